package penstock.kernel.json

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

object Utf8 {
  private val High = 0x8080808080808080L

  /** Whether the bytes are text. */
  def holds(bytes: Array[Byte]): Boolean = isAscii(bytes) || UTF8String.fromBytes(bytes).isValid

  private def isAscii(bytes: Array[Byte]): Boolean = {
    var at = 0
    while (at + 8 <= bytes.length && (Platform.getLong(bytes, Platform.BYTE_ARRAY_OFFSET + at.toLong) & High) == 0) at += 8
    while (at < bytes.length && bytes(at) >= 0) at += 1
    at == bytes.length
  }
}
