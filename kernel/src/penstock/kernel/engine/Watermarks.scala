package penstock.kernel.engine

import java.nio.ByteBuffer
import penstock.kernel.log.Place

/** How far clocks had come before each record of a batch.
  *
  * @param begun how far each was when the batch began
  * @param steps of each clock, if it was told: `[frame 8][from there on 8]` for every step, ascending
  */
final class Watermarks(begun: Array[Long], steps: Array[Array[Byte]]) {
  private val told = begun.indices.map(clock => if (clock < steps.length && steps(clock) != null) steps(clock) else Array.emptyByteArray).toArray

  /** How far a clock had come before the record at `place`. */
  def at(clock: Int, place: Long): Long = {
    val from = ByteBuffer.wrap(told(clock))
    val frame = place >> Place.IndexBits
    var (low, high) = (0, told(clock).length / Watermarks.Step)
    while (low < high) {
      val middle = (low + high) >>> 1
      if (from.getLong(middle * Watermarks.Step) <= frame) low = middle + 1 else high = middle
    }
    if (low == 0) begun(clock) else math.max(begun(clock), from.getLong((low - 1) * Watermarks.Step + 8))
  }
}

object Watermarks {
  private[engine] val Step = 16
  val None = new Watermarks(Array.empty, Array.empty)

  /** The steps as bytes. */
  def bytes(frames: Array[Long], values: Array[Long]): Array[Byte] = {
    val made = ByteBuffer.allocate(frames.length * Step)
    frames.indices.foreach(i => made.putLong(frames(i)).putLong(values(i)))
    made.array
  }
}
