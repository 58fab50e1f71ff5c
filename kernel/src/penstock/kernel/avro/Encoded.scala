package penstock.kernel.avro

import org.apache.spark.unsafe.Platform

/** The bytes are not what the schema says. */
object NotAvro extends RuntimeException("not Avro", null, false, false)

/** Bytes in Avro's encoding, read from front to back: `at` is the next byte. */
final class Encoded {
  var bytes: Array[Byte] = Array.emptyByteArray
  var at = 0

  def over(found: Array[Byte], start: Int): Unit = {
    bytes = found
    at = start
  }

  def isDone: Boolean = at == bytes.length

  /** Passes so many bytes; where they begin. */
  def take(count: Long): Int = {
    if (count < 0 || count > bytes.length - at) throw NotAvro
    at += count.toInt
    at - count.toInt
  }

  def long(): Long = {
    var value = 0L
    var shift = 0
    var byte = 0
    while ({
      byte = bytes(take(1))
      value |= (byte & 127L) << shift
      byte < 0
    }) {
      shift += 7
      if (shift > 63) throw NotAvro
    }
    (value >>> 1) ^ -(value & 1)
  }

  def int(): Int = {
    val value = long()
    if (value != value.toInt) throw NotAvro
    value.toInt
  }

  def boolean(): Boolean = {
    val byte = bytes(take(1))
    if (byte != 0 && byte != 1) throw NotAvro
    byte == 1
  }

  def float(): Float = Platform.getFloat(bytes, Platform.BYTE_ARRAY_OFFSET + take(4))

  def double(): Double = Platform.getDouble(bytes, Platform.BYTE_ARRAY_OFFSET + take(8))

  /** An index below `bound`. */
  def index(bound: Int): Int = {
    val value = long()
    if (value < 0 || value >= bound) throw NotAvro
    value.toInt
  }

  /** How many elements the next block of an array or map has, 0 after the last. An element has at least one byte. */
  def count(): Int = {
    val found = long()
    if (found < 0) long()
    val value = math.abs(found)
    if (value < 0 || value > bytes.length - at) throw NotAvro
    value.toInt
  }
}
