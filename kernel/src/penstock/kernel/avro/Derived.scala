package penstock.kernel.avro

import org.apache.avro.Schema
import org.apache.spark.sql.types._

/** The schema of values where a topic declares none; `schema_of` of `src/penstock/log/kafka/avro` makes the same. */
object Derived {
  def schema(columns: StructType): Schema =
    new Schema.Parser().parse(record("row", columns.fields.map(field => field.name -> nullable(of(field.dataType, field.name))).toSeq))

  private def of(what: DataType, path: String): String = what match {
    case BooleanType => "\"boolean\""
    case ByteType | ShortType | IntegerType => "\"int\""
    case LongType => "\"long\""
    case FloatType => "\"float\""
    case DoubleType => "\"double\""
    case StringType => "\"string\""
    case BinaryType => "\"bytes\""
    case DateType => logical("int", "date")
    case TimestampType => logical("long", "timestamp-micros")
    case TimestampNTZType => logical("long", "local-timestamp-micros")
    case decimal: DecimalType => s"""{"type":"bytes","logicalType":"decimal","precision":${decimal.precision},"scale":${decimal.scale}}"""
    case ArrayType(element, _) => s"""{"type":"array","items":${nullable(of(element, path + "_"))}}"""
    case MapType(StringType, value, _) => s"""{"type":"map","values":${nullable(of(value, path + "_"))}}"""
    case MapType(key, value, _) =>
      val entry = record(path + "_entry", Seq("key" -> of(key, path + "_k"), "value" -> nullable(of(value, path + "_v"))))
      s"""{"type":"array","items":$entry}"""
    case StructType(fields) =>
      record(path + "_row", fields.map(field => field.name -> nullable(of(field.dataType, s"${path}_${field.name}"))).toSeq)
    case other => throw new IllegalStateException(s"the log has no type ${other.sql}")
  }

  private def logical(what: String, name: String): String = s"""{"type":"$what","logicalType":"$name"}"""

  private def nullable(what: String): String = s"""["null",$what]"""

  private def record(name: String, fields: Seq[(String, String)]): String =
    fields.map { case (field, what) => s"""{"name":"$field","type":$what}""" }.mkString(s"""{"type":"record","name":"$name","fields":[""", ",", "]}")
}
