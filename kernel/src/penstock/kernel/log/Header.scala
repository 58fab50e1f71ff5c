package penstock.kernel.log

import java.nio.charset.StandardCharsets.ISO_8859_1

import com.fasterxml.jackson.core.{JsonParseException, JsonParser, JsonToken}
import com.fasterxml.jackson.databind.JsonNode

import scala.collection.mutable.ArrayBuffer

/** The records of one topic and partition in a frame, and where their columns lie: in the frame's body, or in a staged file.
  *
  * @param end the offset after its last; in Kafka not every offset before it has a record
  * @param inKafka whether the records lie in a topic of Kafka: then nothing of them is in the log's own files
  * @param most its largest event time, and `top` that of the partition so far; `Steps.None` where there is none
  */
final case class Block(
    topic: String,
    partition: Int,
    schema: Int,
    base: Long,
    end: Long,
    count: Int,
    index: Int,
    inKafka: Boolean,
    extras: Array[String],
    most: Long,
    top: Long,
    start: Long,
    bytes: Long,
    crc: Long,
    file: Option[String]) {

  /** How many offsets it spans, and places. */
  def width: Int = math.toIntExact(end - base)
}

/** Nothing before `until` any more on `topic`, for everybody (scope "") or for the readers of one scope; or of one of its producers. Else it
  * `says` what happens to a partition or producer.
  */
final case class Punctuation(topic: String, until: Long, scope: String, says: String, partition: Option[Int], producer: Option[String]) {

  /** Whether it is about the topic as a whole. */
  def isWhole: Boolean = says.isEmpty && producer.isEmpty
}

object Punctuation {
  val Joins = "joins"
  val Leaves = "leaves"
  val Idle = "idle"
}

/** What a frame says of itself, as far as reading needs it. */
final case class Header(
    frame: Long, at: Long, producer: Option[String], blocks: Array[Block], punctuation: Array[Punctuation], control: Array[JsonNode])

object Header {
  private val NoExtras = Array.empty[String]

  def parsed(bytes: Array[Byte], at: Int, length: Int): Header = {
    val json = Json.factory.createParser(bytes, at, length)
    try header(json)
    finally json.close()
  }

  /** The number that the header begins with, where no more of it can be read. */
  def number(bytes: Array[Byte], at: Int, length: Int): Option[Long] =
    """^\{"frame":(\d{1,18})\b""".r.findFirstMatchIn(new String(bytes, at, math.min(length, 32), ISO_8859_1)).map(_.group(1).toLong)

  private def header(json: JsonParser): Header = {
    var frame, at = 0L
    var producer: Option[String] = None
    val blocks = ArrayBuffer.empty[Block]
    val punctuation = ArrayBuffer.empty[Punctuation]
    val control = ArrayBuffer.empty[JsonNode]
    json.nextToken()
    eachField(json) {
      case "frame" => frame = json.getLongValue
      case "at" => at = json.getLongValue
      case "producer" => producer = Some(json.getText.intern()) // few, and in most frames
      case "blocks" => eachItem(json)(blocks += block(json))
      case "punctuation" => eachItem(json)(punctuation += punctuationOf(json))
      case "control" => eachItem(json)(control += Json.mapper.readTree[JsonNode](json))
      case _ => json.skipChildren()
    }
    Header(frame, at, producer, blocks.toArray, punctuation.toArray, control.toArray)
  }

  private def block(json: JsonParser): Block = {
    var topic = ""
    var partition, schema, count, index = 0
    var base, start, bytes, crc = 0L
    var end = -1L
    var inKafka = false
    var most, top = Steps.None
    var extras = NoExtras
    var file: Option[String] = None
    eachField(json) {
      case "topic" => topic = json.getText
      case "partition" => partition = json.getIntValue
      case "schema" => schema = json.getIntValue
      case "base" => base = json.getLongValue
      case "end" => end = json.getLongValue
      case "kafka" => inKafka = json.getBooleanValue
      case "count" => count = json.getIntValue
      case "index" => index = json.getIntValue
      case "times" => eachItem(json) { most = json.getLongValue }
      case "top" => if (json.currentToken() != JsonToken.VALUE_NULL) top = json.getLongValue
      case "start" => start = json.getLongValue
      case "bytes" => bytes = json.getLongValue
      case "crc" => crc = json.getLongValue
      case "file" => if (json.currentToken() != JsonToken.VALUE_NULL) file = Some(json.getText)
      case "extras" => eachItem(json) { extras = extras :+ json.getText }
      case _ => json.skipChildren()
    }
    Block(topic, partition, schema, base, if (inKafka) end else base + count, count, index, inKafka, extras, most, top, start, bytes, crc, file)
  }

  private def punctuationOf(json: JsonParser): Punctuation = {
    var topic, scope, says = ""
    var until = Steps.None
    var partition: Option[Int] = None
    var producer: Option[String] = None
    eachField(json) {
      case "topic" => topic = json.getText
      case "until" => until = json.getLongValue
      case "scope" => scope = json.getText
      case "says" => says = json.getText
      case "partition" => partition = Some(json.getIntValue)
      case "producer" => producer = Some(json.getText)
      case _ => json.skipChildren()
    }
    Punctuation(topic, until, scope, says, partition, producer)
  }

  /** Calls `use` with each field's name, the parser standing at its value. */
  private def eachField(json: JsonParser)(use: String => Unit): Unit = {
    expect(json, JsonToken.START_OBJECT)
    while (json.nextToken() != JsonToken.END_OBJECT) {
      val name = json.currentName()
      json.nextToken()
      use(name)
    }
  }

  private def eachItem(json: JsonParser)(use: => Unit): Unit = {
    expect(json, JsonToken.START_ARRAY)
    while (json.nextToken() != JsonToken.END_ARRAY) use
  }

  private def expect(json: JsonParser, token: JsonToken): Unit =
    if (json.currentToken() != token) throw new JsonParseException(json, s"$token expected, not ${json.currentToken()}")
}
