package penstock.kernel.engine

import java.io.{DataInput, DataOutput}
import java.util.Arrays
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.array.ByteArrayMethods

/** Values, as bytes, each once.
  *
  * They lie behind each other, `[length 4][bytes]`; the index, open-addressed, has where each begins, and 1 more; 0 where there is none.
  */
final class ValueSet private (private var data: Array[Byte], private var used: Int, private var count: Int) {
  private var index: Array[Int] = _

  def this() = this(new Array[Byte](256), 0, 0)

  def size: Int = count

  /** Whether it was not there. */
  def add(base: AnyRef, offset: Long, length: Int): Boolean = {
    if (index == null) widen(64)
    val slot = slotOf(base, offset, length)
    val fresh = index(slot) == 0
    if (fresh) {
      if (used + 4 + length > data.length) data = Arrays.copyOf(data, math.max(used + 4 + length, 2 * data.length))
      Platform.putInt(data, Platform.BYTE_ARRAY_OFFSET + used, length)
      Platform.copyMemory(base, offset, data, start(used), length)
      index(slot) = used + 1
      used += 4 + length
      count += 1
      if (2 * count > index.length) widen(2 * index.length)
    }
    fresh
  }

  def addAll(other: ValueSet): Unit = other.each(at => add(other.data, other.start(at), other.length(at)))

  /** All values, in the order of their bytes. */
  def sorted: Array[Array[Byte]] = {
    val found = new Array[Array[Byte]](count)
    var i = 0
    each { at =>
      found(i) = Arrays.copyOfRange(data, at + 4, at + 4 + length(at))
      i += 1
    }
    Arrays.sort(found, Operator.Bytes)
    found
  }

  def write(out: DataOutput): Unit = {
    out.writeInt(count)
    out.writeInt(used)
    out.write(data, 0, used)
  }

  /** Where the value is in the index, or where it would be. */
  private def slotOf(base: AnyRef, offset: Long, length: Int): Int = {
    val mask = index.length - 1
    var slot = Envelope.hashOf(base, offset, length).toInt & mask
    while (index(slot) != 0 && !isAt(index(slot) - 1, base, offset, length)) slot = (slot + 1) & mask
    slot
  }

  private def isAt(at: Int, base: AnyRef, offset: Long, length: Int): Boolean =
    this.length(at) == length && ByteArrayMethods.arrayEquals(data, start(at), base, offset, length)

  private def widen(to: Int): Unit = {
    var size = to
    while (size < 2 * count) size *= 2
    index = new Array[Int](size)
    each(at => index(slotOf(data, start(at), length(at))) = at + 1)
  }

  private def each(visit: Int => Unit): Unit = {
    var at = 0
    while (at < used) {
      visit(at)
      at += 4 + length(at)
    }
  }

  private def length(at: Int): Int = Platform.getInt(data, Platform.BYTE_ARRAY_OFFSET + at)
  private def start(at: Int): Long = Platform.BYTE_ARRAY_OFFSET + at + 4
}

object ValueSet {
  def read(in: DataInput): ValueSet = {
    val (count, used) = (in.readInt(), in.readInt())
    val data = new Array[Byte](used)
    in.readFully(data)
    new ValueSet(data, used, count)
  }
}
