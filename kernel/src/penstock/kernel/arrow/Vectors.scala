package penstock.kernel.arrow

import java.math.{BigDecimal, BigInteger}

import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** A column in Arrow's layout in a byte array, from row `first` of the record batch on. Rows are counted from there.
  *
  * @param validity address of the bitmap of rows that are not null, or `RecordBytes.AllValid`
  */
abstract class BytesVector(what: DataType, bytes: Array[Byte], validity: Long, first: Int, rows: Int) extends ReadVector(what) {
  final override def hasNull: Boolean = validity != RecordBytes.AllValid

  final override def numNulls: Int = {
    var count = 0
    var row = 0
    while (hasNull && row < rows) {
      if (isNullAt(row)) count += 1
      row += 1
    }
    count
  }

  final override def isNullAt(row: Int): Boolean = validity != RecordBytes.AllValid && {
    val at = first + row
    (Platform.getByte(bytes, validity + (at >> 3)) >> (at & 7) & 1) == 0
  }
}

final class BooleanVector(what: DataType, bytes: Array[Byte], validity: Long, data: Long, first: Int, rows: Int)
    extends BytesVector(what, bytes, validity, first, rows) {
  override def getBoolean(row: Int): Boolean = {
    val at = first + row
    (Platform.getByte(bytes, data + (at >> 3)) >> (at & 7) & 1) != 0
  }
}

final class ByteVector(what: DataType, bytes: Array[Byte], validity: Long, data: Long, first: Int, rows: Int)
    extends BytesVector(what, bytes, validity, first, rows) {
  private val begin = data + first
  override def getByte(row: Int): Byte = Platform.getByte(bytes, begin + row)
}

final class ShortVector(what: DataType, bytes: Array[Byte], validity: Long, data: Long, first: Int, rows: Int)
    extends BytesVector(what, bytes, validity, first, rows) {
  private val begin = data + 2L * first
  override def getShort(row: Int): Short = Platform.getShort(bytes, begin + 2L * row)
}

final class IntVector(what: DataType, bytes: Array[Byte], validity: Long, data: Long, first: Int, rows: Int)
    extends BytesVector(what, bytes, validity, first, rows) {
  private val begin = data + 4L * first
  override def getInt(row: Int): Int = Platform.getInt(bytes, begin + 4L * row)
}

final class LongVector(what: DataType, bytes: Array[Byte], validity: Long, data: Long, first: Int, rows: Int)
    extends BytesVector(what, bytes, validity, first, rows) {
  private val begin = data + 8L * first
  override def getLong(row: Int): Long = Platform.getLong(bytes, begin + 8L * row)
}

final class FloatVector(what: DataType, bytes: Array[Byte], validity: Long, data: Long, first: Int, rows: Int)
    extends BytesVector(what, bytes, validity, first, rows) {
  private val begin = data + 4L * first
  override def getFloat(row: Int): Float = Platform.getFloat(bytes, begin + 4L * row)
}

final class DoubleVector(what: DataType, bytes: Array[Byte], validity: Long, data: Long, first: Int, rows: Int)
    extends BytesVector(what, bytes, validity, first, rows) {
  private val begin = data + 8L * first
  override def getDouble(row: Int): Double = Platform.getDouble(bytes, begin + 8L * row)
}

/** Decimals of 128 bits; those of at most 18 digits need only the lower half. */
final class DecimalVector(what: DataType, bytes: Array[Byte], validity: Long, data: Long, first: Int, rows: Int)
    extends BytesVector(what, bytes, validity, first, rows) {
  private val begin = data + 16L * first

  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal =
    if (isNullAt(row)) null
    else if (precision <= Decimal.MAX_LONG_DIGITS) Decimal.createUnsafe(Platform.getLong(bytes, begin + 16L * row), precision, scale)
    else {
      val bigEndian = new Array[Byte](16)
      var at = 0
      while (at < 16) {
        bigEndian(15 - at) = Platform.getByte(bytes, begin + 16L * row + at)
        at += 1
      }
      Decimal.apply(new BigDecimal(new BigInteger(bigEndian), scale), precision, scale)
    }
}

/** Strings and binary: row `i` lies between the `i`-th offset and the next. Strings point into the bytes, they are not copied. */
final class TextVector(what: DataType, bytes: Array[Byte], validity: Long, offsets: Long, data: Long, first: Int, rows: Int)
    extends BytesVector(what, bytes, validity, first, rows) {
  private val begin = offsets + 4L * first

  override def getUTF8String(row: Int): UTF8String =
    if (isNullAt(row)) null
    else {
      val from = Platform.getInt(bytes, begin + 4L * row)
      UTF8String.fromAddress(bytes, data + from, Platform.getInt(bytes, begin + 4L * row + 4) - from)
    }

  override def getBinary(row: Int): Array[Byte] =
    if (isNullAt(row)) null
    else {
      val from = Platform.getInt(bytes, begin + 4L * row)
      val value = new Array[Byte](Platform.getInt(bytes, begin + 4L * row + 4) - from)
      Platform.copyMemory(bytes, data + from, value, Platform.BYTE_ARRAY_OFFSET, value.length)
      value
    }
}
