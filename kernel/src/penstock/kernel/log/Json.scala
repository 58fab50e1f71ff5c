package penstock.kernel.log

import com.fasterxml.jackson.core.{JsonFactory, StreamReadConstraints}
import com.fasterxml.jackson.core.json.JsonReadFeature
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.json.JsonMapper

import scala.jdk.CollectionConverters._

/** JSON as trees, for what is read rarely; frame headers are read token by token. */
object Json {
  // Whatever Python writes has to pass: a writer's notes may hold NaN, and be as long and as deep as it likes.
  private val limits = StreamReadConstraints.builder.maxNameLength(Int.MaxValue).maxNumberLength(Int.MaxValue)
    .maxStringLength(Int.MaxValue).maxNestingDepth(Int.MaxValue).build
  val factory: JsonFactory = new JsonFactory().setStreamReadConstraints(limits)
  val mapper: ObjectMapper = JsonMapper.builder(factory).enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS).build

  def tree(bytes: Array[Byte]): JsonNode = mapper.readTree(bytes)
  def tree(text: String): JsonNode = mapper.readTree(text)

  def fields(node: JsonNode): Iterator[(String, JsonNode)] =
    node.properties().iterator().asScala.map(field => field.getKey -> field.getValue)

  def items(node: JsonNode): Iterator[JsonNode] =
    if (node == null) Iterator.empty else node.elements().asScala

  def strings(node: JsonNode): Array[String] = items(node).map(_.asText).toArray
}
