package penstock.kernel.log

import java.util.concurrent.ConcurrentHashMap

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

/** How the event time of a topic is made from three other columns; `src/penstock/log/correction.py` has the rule. */
final case class Correction(occurred: String, sent: String, received: String, bound: Long)

/** Values in Avro, of one schema (None: made from the columns), or each beginning with the id of its schema. */
final case class AvroValues(schema: Option[String], ids: Map[Int, String])

/** A topic as declared: its schema versions, each the one before with nullable columns added at the end.
  *
  * @param declared the versions with what may not be NULL
  * @param avro how values are written in Kafka; None: as JSON
  * @param isRaw whether its columns are the bytes of keys and values, and a time
  */
final case class Topic(
    name: String,
    partitions: Int,
    key: Seq[String],
    declared: Vector[StructType],
    isRaw: Boolean = false,
    eventTime: Option[String] = None,
    correction: Option[Correction] = None,
    avro: Option[AvroValues] = None) {

  /** The versions as they are read: only the key is never null, for a deletion may hold nothing else. */
  val schemas: Vector[StructType] = declared.map(Topic.relaxed(_, key))

  def newest: StructType = schemas.last

  /** The columns of a version, or an error if the catalog does not have it. */
  def version(number: Int): StructType =
    if (number < schemas.length) schemas(number)
    else throw new LogError(s"""topic "$name" has no schema version $number""", s"There are ${schemas.length}.")

  def grown(columns: StructType): Topic = if (columns == declared.last) this else copy(declared = declared :+ columns)
}

object Topic {
  // Types mean the same whatever the session says, as with spark.sql.timestampType.
  private val conf = new SQLConf
  private val types = new ConcurrentHashMap[String, DataType]

  def of(name: String, found: JsonNode): Topic = {
    val key = Json.strings(found.get("key")).toSeq
    val schemas = Json.items(found.get("schemas")).map(schema).toVector
    val made = Option(found.get("corrected")).filter(_.isObject).map { rule =>
      Correction(rule.get("occurred").asText, rule.get("sent").asText, rule.get("received").asText, rule.get("bound").asLong)
    }
    val time = Option(found.get("event_time")).filter(_.isTextual).map(_.asText)
    Topic(name, found.get("partitions").asInt, key, schemas, found.path("raw").asBoolean(false), time, made, Option(found.get("values")).map(avro))
  }

  private def avro(found: JsonNode): AvroValues =
    AvroValues(
      Option(found.get("schema")).filter(_.isTextual).map(_.asText),
      Json.items(found.get("ids")).map(pair => pair.get(0).asInt -> pair.get(1).asText).toMap)

  /** The columns of a schema version. */
  def schema(found: JsonNode): StructType =
    StructType(Json.items(found).map { column =>
      StructField(column.get("name").asText, parsed(column.get("type").asText), column.get("nullable").asBoolean)
    }.toArray)

  private def relaxed(columns: StructType, key: Seq[String]): StructType =
    StructType(columns.fields.map(field => StructField(field.name, nullable(field.dataType), field.nullable || !key.contains(field.name))))

  private def parsed(text: String): DataType =
    types.computeIfAbsent(text, _ => SQLConf.withExistingConf(conf)(CatalystSqlParser.parseDataType(text)))

  /** The same type, with nothing inside it promised to be there: nobody checks that when records are appended. */
  private def nullable(found: DataType): DataType = found match {
    case ArrayType(element, _) => ArrayType(nullable(element), containsNull = true)
    case MapType(key, value, _) => MapType(nullable(key), nullable(value), valueContainsNull = true)
    case StructType(fields) => StructType(fields.map(field => StructField(field.name, nullable(field.dataType), nullable = true)))
    case plain => plain
  }
}
