package penstock.kernel.log

import java.util.concurrent.ConcurrentHashMap

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

/** A topic as declared: its schema versions, each the one before with nullable columns added at the end. */
final case class Topic(name: String, partitions: Int, key: Seq[String], schemas: Vector[StructType]) {

  def newest: StructType = schemas.last

  /** The columns of a version, or an error if the catalog does not have it. */
  def version(number: Int): StructType =
    if (number < schemas.length) schemas(number)
    else throw new LogError(s"""topic "$name" has no schema version $number""", s"There are ${schemas.length}.")

  def grown(columns: StructType): Topic = if (columns == newest) this else copy(schemas = schemas :+ columns)
}

object Topic {
  // Types mean the same whatever the session says, as with spark.sql.timestampType.
  private val conf = new SQLConf
  private val types = new ConcurrentHashMap[String, DataType]

  def of(name: String, found: JsonNode): Topic = {
    val key = Json.strings(found.get("key")).toSeq
    val schemas = Json.items(found.get("schemas")).map(schema(_, key)).toVector
    Topic(name, found.get("partitions").asInt, key, schemas)
  }

  /** The columns of a schema version. Only the key is never null: a deletion may hold nothing else. */
  def schema(found: JsonNode, key: Seq[String]): StructType =
    StructType(Json.items(found).map { column =>
      val name = column.get("name").asText
      StructField(name, parsed(column.get("type").asText), column.get("nullable").asBoolean || !key.contains(name))
    }.toArray)

  private def parsed(text: String): DataType =
    types.computeIfAbsent(text, _ => nullable(SQLConf.withExistingConf(conf)(CatalystSqlParser.parseDataType(text))))

  /** The same type, with nothing inside it promised to be there: nobody checks that when records are appended. */
  private def nullable(found: DataType): DataType = found match {
    case ArrayType(element, _) => ArrayType(nullable(element), containsNull = true)
    case MapType(key, value, _) => MapType(nullable(key), nullable(value), valueContainsNull = true)
    case StructType(fields) => StructType(fields.map(field => StructField(field.name, nullable(field.dataType), nullable = true)))
    case plain => plain
  }
}
