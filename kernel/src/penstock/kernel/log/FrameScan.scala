package penstock.kernel.log

/** Goes through the frames of a stretch file, once, as far as they are committed.
  *
  * State: the byte up to which frames have been seen.
  * Out: frames in order. Where a frame's first header is damaged, its second says what it held; where neither can
  * be read, the bytes up to the next whole frame are passed over: the offsets then missing tell (`Member.missing`).
  */
final class FrameScan(file: ReadFile, begin: Long) {
  private val bytes = new FrameBytes(file)
  private var at = begin

  def seen: Long = at

  def advance(limit: Long)(frame: Found => Unit): Unit = {
    bytes.forget()
    while (at < limit) {
      val found = bytes.front(at, limit)
      if (found != null) {
        frame(found)
        at = found.end
      } else {
        val following = bytes.nextFront(at + 8, limit)
        damaged(at, following).foreach(frame)
        at = following
      }
    }
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
