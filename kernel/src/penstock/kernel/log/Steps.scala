package penstock.kernel.log

import java.util.Arrays

/** A time that only rises from frame to frame: the largest event time so far, or punctuation.
  *
  * State: the frames that raised it and what they raised it to, ascending.
  */
final class Steps(base: Long) {
  private var frames = new Array[Long](8)
  private var values = new Array[Long](8)
  private var size = 0

  def last: Long = if (size == 0) base else values(size - 1)

  /** Takes in what a frame says; frames come in order. */
  def raise(frame: Long, value: Long): Unit = if (value > last) {
    if (size > 0 && frames(size - 1) == frame) size -= 1
    if (size == frames.length) {
      frames = Arrays.copyOf(frames, size * 2)
      values = Arrays.copyOf(values, size * 2)
    }
    frames(size) = frame
    values(size) = value
    size += 1
  }

  /** What stood before `frame`. */
  def before(frame: Long): Long = {
    val at = indexOf(frame)
    if (at == 0) base else values(at - 1)
  }

  /** The frames in `[from, until)` that raised it. */
  def raisedIn(from: Long, until: Long): Array[Long] = Arrays.copyOfRange(frames, indexOf(from), math.max(indexOf(from), indexOf(until)))

  private def indexOf(frame: Long): Int = {
    val found = Arrays.binarySearch(frames, 0, size, frame)
    if (found >= 0) found else -found - 1
  }
}

object Steps {

  /** No time yet; less than every time. */
  val None: Long = Long.MinValue
}
