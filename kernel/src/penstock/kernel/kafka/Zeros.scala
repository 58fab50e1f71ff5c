package penstock.kernel.kafka

import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.types._

/** Values that say nothing, for columns that are never NULL. */
object Zeros {
  def put(column: WritableColumnVector, what: DataType, row: Int): Unit = {
    column.putNotNull(row)
    what match {
      case BooleanType => column.putBoolean(row, false)
      case ByteType => column.putByte(row, 0)
      case ShortType => column.putShort(row, 0)
      case IntegerType | DateType => column.putInt(row, 0)
      case LongType | TimestampType | TimestampNTZType => column.putLong(row, 0L)
      case FloatType => column.putFloat(row, 0f)
      case DoubleType => column.putDouble(row, 0.0)
      case decimal: DecimalType => column.putDecimal(row, Decimal(0L, decimal.precision, decimal.scale), decimal.precision)
      case StringType | BinaryType => column.putByteArray(row, Array.emptyByteArray, 0, 0)
      case StructType(fields) => fields.indices.foreach(at => column.getChild(at).putNull(row))
      case _ => column.putArray(row, 0, 0)
    }
  }
}
