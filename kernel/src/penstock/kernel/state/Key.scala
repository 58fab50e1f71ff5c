package penstock.kernel.state

import java.util.Arrays

/** A slice of bytes with its 64-bit hash.
  *
  * The low bits of the hash have chosen the slot; the upper 32 choose the page and must be uniform. The bytes are read
  * while `Slot.state` runs and not kept.
  */
final class Key(val bytes: Array[Byte], val offset: Int, val length: Int, val hash: Long) {
  def toBytes: Array[Byte] = Arrays.copyOfRange(bytes, offset, offset + length)

  override def hashCode: Int = (hash >>> 32).toInt

  override def equals(other: Any): Boolean = other match {
    case that: Key =>
      hash == that.hash &&
      Arrays.equals(bytes, offset, offset + length, that.bytes, that.offset, that.offset + that.length)
    case _ => false
  }
}
