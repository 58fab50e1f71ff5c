package penstock.kernel.arrow

import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray, ColumnarMap}
import org.apache.spark.unsafe.Platform

/** Arrays: row `i` is the elements between the `i`-th offset and the next. */
final class ArrayVector(what: DataType, bytes: Array[Byte], validity: Long, offsets: Long, element: ColumnVector, first: Int, rows: Int)
    extends BytesVector(what, bytes, validity, first, rows) {
  private val begin = offsets + 4L * first

  override def getChild(at: Int): ColumnVector = element

  override def getArray(row: Int): ColumnarArray = {
    val from = Platform.getInt(bytes, begin + 4L * row)
    new ColumnarArray(element, from, Platform.getInt(bytes, begin + 4L * row + 4) - from)
  }
}

/** Maps: arrays of keys and of values with the same offsets. */
final class MapVector(
    what: DataType, bytes: Array[Byte], validity: Long, offsets: Long, keys: ColumnVector, values: ColumnVector, first: Int, rows: Int)
    extends BytesVector(what, bytes, validity, first, rows) {
  private val begin = offsets + 4L * first

  override def getChild(at: Int): ColumnVector = if (at == 0) keys else values

  override def getMap(row: Int): ColumnarMap = {
    val from = Platform.getInt(bytes, begin + 4L * row)
    new ColumnarMap(keys, values, from, Platform.getInt(bytes, begin + 4L * row + 4) - from)
  }
}

/** Structs: one column for each field, with the same rows. */
final class StructVector(what: DataType, bytes: Array[Byte], validity: Long, fields: Array[ColumnVector], first: Int, rows: Int)
    extends BytesVector(what, bytes, validity, first, rows) {
  override def getChild(at: Int): ColumnVector = fields(at)
}

/** Makes the column of a type over the bytes of a record batch. */
object Columns {

  /** A column of the batch.
    *
    * @param stored its type in the batch
    * @param wanted the type asked for: the same, or a struct with more fields at the end, which are null
    */
  def of(batch: RecordBytes, stored: DataType, wanted: DataType, node: Int, buffer: Int, first: Int, rows: Int): ColumnVector = {
    val bytes = batch.bytes
    val validity = batch.validity(node, buffer)
    def data: Long = batch.address(buffer + 1)
    stored match {
      case BooleanType => new BooleanVector(wanted, bytes, validity, data, first, rows)
      case ByteType => new ByteVector(wanted, bytes, validity, data, first, rows)
      case ShortType => new ShortVector(wanted, bytes, validity, data, first, rows)
      case IntegerType | DateType => new IntVector(wanted, bytes, validity, data, first, rows)
      case LongType | TimestampType | TimestampNTZType => new LongVector(wanted, bytes, validity, data, first, rows)
      case FloatType => new FloatVector(wanted, bytes, validity, data, first, rows)
      case DoubleType => new DoubleVector(wanted, bytes, validity, data, first, rows)
      case _: DecimalType => new DecimalVector(wanted, bytes, validity, data, first, rows)
      case StringType | BinaryType => new TextVector(wanted, bytes, validity, data, batch.address(buffer + 2), first, rows)
      case ArrayType(element, _) =>
        new ArrayVector(wanted, bytes, validity, data, child(batch, element, node + 1, buffer + 2), first, rows)
      case MapType(key, value, _) =>
        // Between the map and its keys stands the struct of its entries: one node, one buffer.
        val keys = child(batch, key, node + 2, buffer + 3)
        val values = child(batch, value, node + 2 + Layout.nodes(key), buffer + 3 + Layout.buffers(key))
        new MapVector(wanted, bytes, validity, data, keys, values, first, rows)
      case struct: StructType =>
        new StructVector(wanted, bytes, validity, fields(batch, struct, wanted.asInstanceOf[StructType], node, buffer, first, rows), first, rows)
      case other => throw new IllegalStateException(s"the log's format has no type ${other.sql}")
    }
  }

  private def fields(
      batch: RecordBytes, stored: StructType, wanted: StructType, node: Int, buffer: Int, first: Int, rows: Int): Array[ColumnVector] = {
    val layout = new Layout(stored.fields.map(_.dataType))
    Array.tabulate(wanted.length) { at =>
      val field = wanted(at).dataType
      if (at >= stored.length) new Made.Null(field)
      else of(batch, stored(at).dataType, field, node + 1 + layout.nodes(at), buffer + 1 + layout.buffers(at), first, rows)
    }
  }

  private def child(batch: RecordBytes, what: DataType, node: Int, buffer: Int): ColumnVector =
    of(batch, what, what, node, buffer, 0, batch.length(node))
}
