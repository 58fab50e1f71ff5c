package penstock.kernel.avro

import java.math.{BigDecimal, BigInteger}
import java.util.Arrays

import org.apache.avro.Schema
import org.apache.avro.Schema.Type
import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.types._
import penstock.kernel.json.{Moment, Utf8}
import penstock.kernel.log.LogError

import scala.jdk.CollectionConverters._

/** Reads values of one schema into a column of one type; `column` is null where they are only checked.
  *
  * What is read and what is refused, and with which words, is that of `src/penstock/log/kafka/avro`.
  */
abstract class AvroReads(val wanted: String, column: WritableColumnVector) {

  /** Reads the next value into a row; whether it is not NULL. */
  def read(in: Encoded, row: Int): Boolean

  final def empty(row: Int): Boolean = {
    if (column ne null) column.putNull(row)
    false
  }

  final def clear(row: Int): Unit = if (column ne null) column.putNotNull(row)

  def reserve(row: Int): Unit = if (column ne null) column.reserve(row + 1)

  protected final def misfit(): Nothing = throw new Misfit(wanted, "")
}

object AvroReads {

  /** What reads such values into a column, or only checks them; an error if the two do not go together. */
  def of(schema: Schema, what: DataType, column: WritableColumnVector, where: String): AvroReads = (schema.getType, what) match {
    case (Type.UNION, _) => new Union(what.sql, column, schema.getTypes.asScala.map(of(_, what, column, where)).toArray)
    case (Type.NULL, _) => new Nulls(what.sql, column)
    case (Type.ARRAY, ArrayType(element, _)) =>
      new Elements(what.sql, column, of(schema.getElementType, element, if (column eq null) null else column.arrayData(), where))
    case (Type.ARRAY, MapType(key, value, _)) if isEntry(schema.getElementType) =>
      val fields = schema.getElementType.getFields
      new Entries(what.sql, column, of(fields.get(0).schema, key, child(column, 0), where), of(fields.get(1).schema, value, child(column, 1), where))
    case (Type.MAP, MapType(StringType, value, _)) =>
      new Entries(what.sql, column, new Texts("STRING", child(column, 0)), of(schema.getValueType, value, child(column, 1), where))
    case (Type.RECORD, struct: StructType) => new Fields(what.sql, column, schema, struct, where)
    case _ => Scalars.of(schema, what, column).getOrElse(throw new LogError(
      s"the Avro schema has ${schema.getType.getName} for $where", s"Its column is ${what.sql}.", "Declare the topic with another schema."))
  }

  def child(column: WritableColumnVector, at: Int): WritableColumnVector = if (column eq null) null else column.getChild(at)

  private def isEntry(schema: Schema): Boolean =
    schema.getType == Type.RECORD && schema.getFields.asScala.map(_.name).toSeq == Seq("key", "value")
}

private object Scalars {
  def of(schema: Schema, what: DataType, column: WritableColumnVector): Option[AvroReads] = {
    val logical = Option(schema.getProp("logicalType")).getOrElse("")
    Option((schema.getType, what) match {
      case (Type.BYTES | Type.FIXED, decimal: DecimalType) if logical == "decimal" => new Decimals(decimal, column, schema)
      case (Type.INT | Type.LONG, decimal: DecimalType) if logical.isEmpty => new Decimals(decimal, column, schema)
      case (Type.BYTES | Type.FIXED, BinaryType) => new Binaries(what.sql, column, schema)
      case (Type.STRING, StringType) => new Texts(what.sql, column)
      case (Type.ENUM, StringType) => new Symbols(what.sql, column, schema)
      case (Type.BOOLEAN, BooleanType) => new Booleans(what.sql, column)
      case (Type.INT, DateType) if logical == "date" => new Dates(what.sql, column)
      case (Type.LONG, TimestampType) if logical == "timestamp-millis" || logical == "timestamp-micros" => new Times(what.sql, column, logical.endsWith("millis"))
      case (Type.LONG, TimestampNTZType) if logical == "local-timestamp-millis" || logical == "local-timestamp-micros" =>
        new Times(what.sql, column, logical.endsWith("millis"))
      case (Type.INT | Type.LONG, ByteType | ShortType | IntegerType | LongType) => new Integers(what, column, schema)
      case (Type.INT | Type.LONG, FloatType | DoubleType) if logical.isEmpty => new Floating(what, column, schema)
      case (Type.FLOAT | Type.DOUBLE, FloatType | DoubleType) => new Floating(what, column, schema)
      case _ => null
    })
  }
}

private final class Nulls(wanted: String, column: WritableColumnVector) extends AvroReads(wanted, column) {
  override def read(in: Encoded, row: Int): Boolean = empty(row)
}

private final class Union(wanted: String, column: WritableColumnVector, branches: Array[AvroReads]) extends AvroReads(wanted, column) {
  override def reserve(row: Int): Unit = branches.foreach(_.reserve(row))
  override def read(in: Encoded, row: Int): Boolean = branches(in.index(branches.length)).read(in, row)
}

private final class Booleans(wanted: String, column: WritableColumnVector) extends AvroReads(wanted, column) {
  override def read(in: Encoded, row: Int): Boolean = {
    val value = in.boolean()
    if (column ne null) column.putBoolean(row, value)
    true
  }
}

private final class Integers(what: DataType, column: WritableColumnVector, schema: Schema) extends AvroReads(what.sql, column) {
  private val isInt = schema.getType == Type.INT
  private val bound = what match {
    case ByteType => Byte.MaxValue.toLong
    case ShortType => Short.MaxValue.toLong
    case IntegerType => Int.MaxValue.toLong
    case _ => Long.MaxValue
  }

  override def read(in: Encoded, row: Int): Boolean = {
    val value = if (isInt) in.int().toLong else in.long()
    if (value > bound || value < -bound - 1) misfit()
    if (column ne null) what match {
      case ByteType => column.putByte(row, value.toByte)
      case ShortType => column.putShort(row, value.toShort)
      case IntegerType => column.putInt(row, value.toInt)
      case _ => column.putLong(row, value)
    }
    true
  }
}

private final class Floating(what: DataType, column: WritableColumnVector, schema: Schema) extends AvroReads(what.sql, column) {
  override def read(in: Encoded, row: Int): Boolean = {
    val value = schema.getType match {
      case Type.INT => in.int().toDouble
      case Type.LONG => in.long().toDouble
      case Type.FLOAT => in.float().toDouble
      case _ => in.double()
    }
    if (what == FloatType && value.toFloat.isInfinite && !value.isInfinite) misfit()
    if (column ne null) { if (what == FloatType) column.putFloat(row, value.toFloat) else column.putDouble(row, value) }
    true
  }
}

private final class Decimals(what: DecimalType, column: WritableColumnVector, schema: Schema) extends AvroReads(what.sql, column) {
  private val scale = Option(schema.getObjectProp("scale")).fold(0)(_.asInstanceOf[Number].intValue)

  override def read(in: Encoded, row: Int): Boolean = {
    val found = schema.getType match {
      case Type.INT => BigDecimal.valueOf(in.int().toLong)
      case Type.LONG => BigDecimal.valueOf(in.long())
      case _ =>
        val size = if (schema.getType == Type.FIXED) schema.getFixedSize.toLong else in.long()
        val start = in.take(size)
        new BigDecimal(if (size == 0) BigInteger.ZERO else new BigInteger(in.bytes, start, size.toInt), scale)
    }
    val fitted =
      if (found.precision > Decimals.Widest) misfit()
      else try found.setScale(what.scale) catch { case _: ArithmeticException => misfit() }
    if (fitted.precision > what.precision) misfit()
    if (column ne null) column.putDecimal(row, Decimal(fitted, what.precision, what.scale), what.precision)
    true
  }
}

private object Decimals {
  val Widest = 80
}

private final class Texts(wanted: String, column: WritableColumnVector) extends AvroReads(wanted, column) {
  override def read(in: Encoded, row: Int): Boolean = {
    val size = in.long()
    val start = in.take(size)
    if (!Utf8.holds(in.bytes, start, start + size.toInt)) misfit()
    if (column ne null) column.putByteArray(row, in.bytes, start, size.toInt)
    true
  }
}

private final class Symbols(wanted: String, column: WritableColumnVector, schema: Schema) extends AvroReads(wanted, column) {
  private val symbols = schema.getEnumSymbols.asScala.map(_.getBytes).toArray

  override def read(in: Encoded, row: Int): Boolean = {
    val found = symbols(in.index(symbols.length))
    if (column ne null) column.putByteArray(row, found, 0, found.length)
    true
  }
}

private final class Binaries(wanted: String, column: WritableColumnVector, schema: Schema) extends AvroReads(wanted, column) {
  override def read(in: Encoded, row: Int): Boolean = {
    val size = if (schema.getType == Type.FIXED) schema.getFixedSize.toLong else in.long()
    val start = in.take(size)
    if (column ne null) column.putByteArray(row, in.bytes, start, size.toInt)
    true
  }
}

private final class Dates(wanted: String, column: WritableColumnVector) extends AvroReads(wanted, column) {
  override def read(in: Encoded, row: Int): Boolean = {
    val days = in.int()
    if (days < Moment.First / Moment.Day || days > Moment.Last / Moment.Day) misfit()
    if (column ne null) column.putInt(row, days)
    true
  }
}

private final class Times(wanted: String, column: WritableColumnVector, inMillis: Boolean) extends AvroReads(wanted, column) {
  private val unit = if (inMillis) 1000L else 1L

  override def read(in: Encoded, row: Int): Boolean = {
    val value = in.long()
    if (value < Moment.First / unit || value > Moment.Last / unit) misfit()
    if (column ne null) column.putLong(row, value * unit)
    true
  }
}

private final class Elements(wanted: String, column: WritableColumnVector, element: AvroReads) extends AvroReads(wanted, column) {
  override def read(in: Encoded, row: Int): Boolean = {
    val data = if (column eq null) null else column.arrayData()
    val begin = if (data eq null) 0 else data.getElementsAppended
    var seen = 0
    var left = in.count()
    try while (left > 0) {
      element.reserve(begin + seen)
      seen += 1
      element.read(in, begin + seen - 1)
      left -= 1
      if (left == 0) left = in.count()
    } catch { case error: Misfit => throw error.under(s"[${seen - 1}]") }
    finally if (data ne null) data.addElementsAppended(seen)
    if (column ne null) column.putArray(row, begin, seen)
    true
  }
}

private final class Entries(wanted: String, column: WritableColumnVector, key: AvroReads, value: AvroReads) extends AvroReads(wanted, column) {
  override def read(in: Encoded, row: Int): Boolean = {
    val keys = AvroReads.child(column, 0)
    val begin = if (keys eq null) 0 else keys.getElementsAppended
    var seen = 0
    var left = in.count()
    try while (left > 0) {
      key.reserve(begin + seen)
      value.reserve(begin + seen)
      seen += 1
      if (!key.read(in, begin + seen - 1)) throw new Misfit(key.wanted, "")
      value.read(in, begin + seen - 1)
      left -= 1
      if (left == 0) left = in.count()
    } finally if (keys ne null) {
      keys.addElementsAppended(seen)
      column.getChild(1).addElementsAppended(seen)
    }
    if (column ne null) column.putArray(row, begin, seen)
    true
  }
}

/** Structs: fields by their names; those that no column has are passed over. */
private final class Fields(wanted: String, column: WritableColumnVector, schema: Schema, struct: StructType, where: String)
    extends AvroReads(wanted, column) {
  private val written = schema.getFields.asScala.toArray
  private val places = written.map(field => struct.fieldNames.indexOf(field.name))
  private val reads = written.indices.map { at =>
    if (places(at) < 0) null else AvroReads.of(written(at).schema, struct(places(at)).dataType, AvroReads.child(column, places(at)), where)
  }.toArray
  private val absent = struct.fields.indices.filterNot(places.contains).toArray
  private val required = struct.fields.map(!_.nullable)

  override def reserve(row: Int): Unit = {
    super.reserve(row)
    reads.foreach(each => if (each ne null) each.reserve(row))
    if (column ne null) absent.foreach(at => column.getChild(at).reserve(row + 1))
  }

  override def read(in: Encoded, row: Int): Boolean = {
    var missing = absent.find(required(_)).getOrElse(Int.MaxValue)
    var at = 0
    while (at < written.length) {
      if (reads(at) eq null) Skips.skip(written(at).schema, in)
      else {
        reads(at).clear(row)
        val isThere = try reads(at).read(in, row) catch { case error: Misfit => throw error.under("." + written(at).name) }
        if (!isThere && required(places(at))) missing = math.min(missing, places(at))
      }
      at += 1
    }
    if (missing < struct.length) throw new Misfit(struct(missing).dataType.sql, "." + struct(missing).name)
    if (column ne null) absent.foreach(at => column.getChild(at).putNull(row))
    true
  }
}
