package penstock.kernel.engine

import java.util.Arrays
import org.apache.spark.unsafe.Platform
import scala.collection.mutable.ArrayBuffer

/** The columns of a frame for each copy of a row, equal neighbours together: `[copies 8][length 4][columns]` for each run. */
final class Runs {
  private val columns = ArrayBuffer.empty[Array[Byte]]
  private val copies = ArrayBuffer.empty[Long]

  def add(made: Array[Byte], times: Long): Unit =
    if (columns.nonEmpty && ((columns.last eq made) || Arrays.equals(columns.last, made))) copies(copies.length - 1) += times
    else {
      columns += made
      copies += times
    }

  /** The bytes, the last run first where the copies were met `backwards`; it is empty afterwards. */
  def take(backwards: Boolean): Array[Byte] = {
    val bytes = new Array[Byte](columns.iterator.map(_.length + 12).sum)
    var at = Platform.BYTE_ARRAY_OFFSET
    columns.indices.foreach { i =>
      val k = if (backwards) columns.length - 1 - i else i
      Platform.putLong(bytes, at, copies(k))
      Platform.putInt(bytes, at + 8, columns(k).length)
      Platform.copyMemory(columns(k), Platform.BYTE_ARRAY_OFFSET, bytes, at + 12, columns(k).length)
      at += 12 + columns(k).length
    }
    columns.clear()
    copies.clear()
    bytes
  }
}

/** Reads `Runs` copy by copy. */
final class RunReader(bytes: Array[Byte]) {
  private var at = 0
  /** Copies that the current run still has. */
  var left = 0L
  var columns: Array[Byte] = null
  read()

  def skip(copies: Long): Unit = {
    left -= copies
    if (left == 0) read()
  }
  private def read(): Unit = if (at < bytes.length) {
    left = Platform.getLong(bytes, Platform.BYTE_ARRAY_OFFSET + at)
    val length = Platform.getInt(bytes, Platform.BYTE_ARRAY_OFFSET + at + 8)
    columns = Arrays.copyOfRange(bytes, at + 12, at + 12 + length)
    at += 12 + length
  }
}
