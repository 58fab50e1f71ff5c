package penstock.kernel.json

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

object Utf8 {
  private val High = 0x8080808080808080L

  /** Whether the bytes are text. */
  def holds(bytes: Array[Byte]): Boolean = holds(bytes, 0, bytes.length)

  def holds(bytes: Array[Byte], from: Int, until: Int): Boolean =
    isAscii(bytes, from, until) || UTF8String.fromBytes(bytes, from, until - from).isValid

  private def isAscii(bytes: Array[Byte], from: Int, until: Int): Boolean = {
    var at = from
    while (at + 8 <= until && (Platform.getLong(bytes, Platform.BYTE_ARRAY_OFFSET + at.toLong) & High) == 0) at += 8
    while (at < until && bytes(at) >= 0) at += 1
    at == until
  }
}
