package penstock.kernel.log

import com.fasterxml.jackson.core.JsonFactory
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

import scala.jdk.CollectionConverters._

/** JSON as trees, for what is read rarely; frame headers are read token by token. */
object Json {
  val mapper = new ObjectMapper
  val factory: JsonFactory = mapper.getFactory

  def tree(bytes: Array[Byte], at: Int, length: Int): JsonNode = mapper.readTree(bytes, at, length)
  def tree(text: String): JsonNode = mapper.readTree(text)

  def fields(node: JsonNode): Iterator[(String, JsonNode)] =
    node.properties().iterator().asScala.map(field => field.getKey -> field.getValue)

  def items(node: JsonNode): Iterator[JsonNode] =
    if (node == null) Iterator.empty else node.elements().asScala

  def strings(node: JsonNode): Array[String] = items(node).map(_.asText).toArray
}
