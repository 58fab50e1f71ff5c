package penstock.kernel.state

import java.util.{Arrays, LinkedHashMap => JavaMap}

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.hash.Murmur3_x86_32

/** Entries one after the other, `[key length][value length][key][value]`, in a part of an array; more can be added at the end. */
private[state] final class PackedEntries(var bytes: Array[Byte], val from: Int, var until: Int) {
  def this() = this(PackedEntries.Nothing, 0, 0)

  def length: Int = until - from

  def clear(): Unit = until = from

  def add(key: Array[Byte], value: Array[Byte]): Unit = {
    val more = Varint.size(key.length) + Varint.size(value.length) + key.length + value.length
    if (until + more > bytes.length) bytes = Arrays.copyOf(bytes, math.max(2 * bytes.length, until + more))
    val at = Varint.put(bytes, Varint.put(bytes, until, key.length), value.length)
    System.arraycopy(key, 0, bytes, at, key.length)
    System.arraycopy(value, 0, bytes, at + key.length, value.length)
    until += more
  }

  def copyTo(out: Array[Byte], at: Int): Unit = System.arraycopy(bytes, from, out, at, length)

  /** These, then those, in an array of their own. */
  def and(those: PackedEntries): PackedEntries = {
    val all = new Array[Byte](length + those.length)
    copyTo(all, 0)
    those.copyTo(all, length)
    new PackedEntries(all, 0, all.length)
  }

  def count: Int = {
    var n = 0
    var at = from
    while (at < until) {
      at = end(at)
      n += 1
    }
    n
  }

  /** Where entries end that begin at `start` and take no more than `limit` bytes; one entry at least. */
  def cut(start: Int, limit: Int): Int = {
    var at = end(start)
    while (at < until && end(at) - start <= limit) at = end(at)
    at
  }

  private def end(at: Int): Int = {
    val k = Varint.get(bytes, at)
    val lengths = at + Varint.size(k)
    val v = Varint.get(bytes, lengths)
    lengths + Varint.size(v) + (k + v).toInt
  }

  def summed(sum: Sum): PackedEntries = {
    val found = new JavaMap[SubKey, Array[Byte]]
    sumInto(found, sum, 0, 1)
    PackedEntries.of(found)
  }

  /** Adds the entries whose sub-keys fall into `pass` to what was found. */
  def sumInto(found: JavaMap[SubKey, Array[Byte]], sum: Sum, pass: Int, passes: Int): Unit = {
    var at = from
    while (at < until) {
      val k = Varint.get(bytes, at).toInt
      val lengths = at + Varint.size(k)
      val v = Varint.get(bytes, lengths).toInt
      val start = lengths + Varint.size(v)
      at = start + k + v
      val key = new SubKey(Arrays.copyOfRange(bytes, start, start + k))
      if (passes == 1 || Math.floorMod(key.hashCode, passes) == pass)
        found.merge(key, Arrays.copyOfRange(bytes, start + k, at), (older, newer) => sum(older, newer))
    }
  }
}

private[state] object PackedEntries {
  private val Nothing = new Array[Byte](0)

  def None: PackedEntries = new PackedEntries

  def of(entries: JavaMap[SubKey, Array[Byte]]): PackedEntries = {
    val packed = new PackedEntries
    entries.forEach((key, value) => packed.add(key.bytes, value))
    packed
  }
}

/** A sub-key that can be the key of a map. */
private[state] final class SubKey(val bytes: Array[Byte]) {
  override val hashCode: Int = Murmur3_x86_32.hashUnsafeBytes(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, 42)
  override def equals(other: Any): Boolean = Arrays.equals(bytes, other.asInstanceOf[SubKey].bytes)
}
