package penstock.kernel.source

import org.apache.spark.sql.connector.catalog.MetadataColumn
import org.apache.spark.sql.types._

/** The hidden columns that every topic has: where a record stands, when it was appended, and what it says of other rows. */
object Hidden {
  val Partition = "_partition"
  val Offset = "_offset"
  val AppendedAt = "_appended_at"
  val Place = "_place"
  val Watermark = "_watermark"
  val Deleted = "_deleted"
  val Replaces = "_replaces"
  val Headers = "_headers"

  /** Of a record that could not be read: why not, and what it was. Such records come only to who asks for the reason. */
  val Bad = "_bad"
  val Key = "_key"
  val Value = "_value"

  /** Of a table's row, what made it so: the partition and the offset of the record, and itself as JSON. */
  val Makers: Seq[String] = Seq(s"$Partition of its record", s"$Offset of its record", "_row of its record")

  /** The watermark of another stream that stood before the record. */
  def watermarkOf(stream: String): String = s"$Watermark of $stream"

  /** The other stream whose watermark a column has; None if it is the topic's own. */
  def streamOf(name: String): Option[String] = Option.when(name.startsWith(Other))(name.drop(Other.length))
  private val Other = watermarkOf("")

  def isHidden(name: String): Boolean = Names.contains(name) || Makers.contains(name) || name.startsWith(Other)

  private val Names = Set(Partition, Offset, AppendedAt, Place, Watermark, Deleted, Replaces, Headers, Bad, Key, Value)

  /** In the order in which Spark appends them to the topic's own columns. */
  def columns(topic: StructType, others: Iterable[String] = Nil): StructType = StructType(Seq(
    StructField(Partition, IntegerType, nullable = false),
    StructField(Offset, LongType, nullable = false),
    StructField(AppendedAt, TimestampType, nullable = false),
    StructField(Place, LongType, nullable = false),
    StructField(Watermark, TimestampType),
    StructField(Deleted, BooleanType, nullable = false),
    StructField(Replaces, replaced(topic)),
    StructField(Headers, MapType(StringType, BinaryType)),
    StructField(Bad, StringType),
    StructField(Key, BinaryType),
    StructField(Value, BinaryType)) ++ others.map(stream => StructField(watermarkOf(stream), TimestampType)))

  def metadata(topic: StructType, others: Iterable[String]): Array[MetadataColumn] = columns(topic, others).fields.map(new Named(_): MetadataColumn)

  /** The type of an extra column in a block whose columns are `stored`. */
  def extra(name: String, stored: StructType): DataType = columns(stored)(name).dataType

  private def replaced(topic: StructType): StructType = StructType(topic.fields.map(_.copy(nullable = true)))

  private final class Named(field: StructField) extends MetadataColumn {
    override def name(): String = field.name
    override def dataType(): DataType = field.dataType
    override def isNullable: Boolean = field.nullable
  }
}
