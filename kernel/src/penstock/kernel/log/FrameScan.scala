package penstock.kernel.log

/** Goes through the frames of a stretch file, once, as far as they are committed.
  *
  * State: the byte up to which frames have been seen, the number of the last, and the byte before which nothing could be read.
  * Out: frames in order. Where a frame's first header is damaged, its second says what it held; where neither can
  * be read, the bytes up to the next whole frame are passed over: the offsets then missing tell (`Hole`). Records may hold
  * anything, whole frames too: nothing is looked for inside a frame whose bounds are known, and numbers only rise.
  */
final class FrameScan(file: ReadFile, begin: Long, first: Long) {
  private val bytes = new FrameBytes(file)
  private var at = begin
  private var last = first - 1

  private var unread = -1L

  def seen: Long = at

  /** Whether what stands before `seen` cannot be read: then the last frames are lost, and nothing after them tells what they held. */
  def isTorn: Boolean = at == unread

  def advance(limit: Long)(frame: Found => Unit): Unit = {
    def take(found: Found): Unit = {
      frame(found)
      at = found.end
      last = found.header.frame
    }
    bytes.forget()
    while (at < limit) {
      val whole = bytes.front(at, limit)
      val found = if (whole == null) bytes.byBack(at, limit) else whole
      if (found == null) {
        val following = bytes.nextFront(at + 8, limit, last)
        val frames = damaged(at, following)
        frames.foreach(take)
        pass(following, isRead = frames.nonEmpty)
      } else if (found.end > limit) pass(limit, isRead = false)
      else take(found)
    }
  }

  private def pass(end: Long, isRead: Boolean): Unit = {
    at = end
    if (!isRead) unread = end
  }

  /** The frames between `start` and `end` whose second headers are whole. */
  private def damaged(start: Long, end: Long): List[Found] = {
    var frames = List.empty[Found]
    var found = bytes.back(end, start)
    while (found != null) {
      frames = found :: frames
      found = bytes.back(found.start, start)
    }
    frames
  }
}
