package penstock.kernel.arrow

import org.apache.spark.sql.types.{DataType, Decimal}
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray, ColumnarMap}
import org.apache.spark.unsafe.types.UTF8String

/** A column that is only read. Each kind answers what Spark asks of its type, and nothing else. */
abstract class ReadVector(what: DataType) extends ColumnVector(what) {
  override def close(): Unit = ()
  override def hasNull: Boolean
  override def numNulls: Int
  override def isNullAt(row: Int): Boolean
  override def getBoolean(row: Int): Boolean = refused
  override def getByte(row: Int): Byte = refused
  override def getShort(row: Int): Short = refused
  override def getInt(row: Int): Int = refused
  override def getLong(row: Int): Long = refused
  override def getFloat(row: Int): Float = refused
  override def getDouble(row: Int): Double = refused
  override def getArray(row: Int): ColumnarArray = refused
  override def getMap(row: Int): ColumnarMap = refused
  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal = refused
  override def getUTF8String(row: Int): UTF8String = refused
  override def getBinary(row: Int): Array[Byte] = refused
  override def getChild(at: Int): ColumnVector = refused

  private def refused: Nothing = throw new UnsupportedOperationException(s"${getClass.getSimpleName} of ${dataType().sql}")
}

/** Columns of constants and sequences: nothing is stored, values are made when they are asked for. */
object Made {

  final class Null(what: DataType) extends ReadVector(what) {
    override def hasNull: Boolean = true
    override def numNulls: Int = Int.MaxValue
    override def isNullAt(row: Int): Boolean = true
  }

  abstract class Present(what: DataType) extends ReadVector(what) {
    override def hasNull: Boolean = false
    override def numNulls: Int = 0
    override def isNullAt(row: Int): Boolean = false
  }

  final class ConstantInt(what: DataType, value: Int) extends Present(what) {
    override def getInt(row: Int): Int = value
  }

  final class ConstantLong(what: DataType, value: Long) extends Present(what) {
    override def getLong(row: Int): Long = value
  }

  final class ConstantBoolean(what: DataType, value: Boolean) extends Present(what) {
    override def getBoolean(row: Int): Boolean = value
  }

  final class RisingLong(what: DataType, base: Long) extends Present(what) {
    override def getLong(row: Int): Long = base + row
  }
}
