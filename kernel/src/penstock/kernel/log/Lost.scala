package penstock.kernel.log

import scala.collection.mutable.ArrayBuffer

/** Offsets `base` to `base + count - 1` of a partition that are in no frame which can be read; frames `[from, until)` may have held them. */
final case class Hole(partition: Int, base: Long, count: Long, from: Long, until: Long) {
  def end: Long = base + count

  def mayLieIn(from: Long, until: Long): Boolean = this.from < until && this.until > from
}

/** The numbers that no frame of a stretch has: of frames that cannot be read, or that were set aside.
  *
  * In: the numbers of the frames that were found, in order.
  */
final class Lost(first: Long) {
  private val ranges = ArrayBuffer.empty[(Long, Long)]
  private var following = first

  /** The number after that of the last frame found. */
  def next: Long = following

  def pass(frame: Long): Unit = {
    if (frame > following) ranges += following -> frame
    following = math.max(following, frame + 1)
  }

  /** The hole of offsets `[base, end)` that were expected in frames `[from, until)`. Only frames that were lost held them. */
  def hole(partition: Int, base: Long, end: Long, from: Long, until: Long): Hole = {
    val all = if (following < until) ranges :+ (following -> until) else ranges
    val lost = all.filter(range => range._1 >= from && range._2 <= until)
    if (lost.isEmpty) Hole(partition, base, end - base, from, until)
    else Hole(partition, base, end - base, lost.head._1, lost.last._2)
  }
}
