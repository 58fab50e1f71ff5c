package penstock.kernel.log

import java.nio.{ByteBuffer, ByteOrder}
import java.util.zip.CRC32

/** One record batch of a sealed file: where its message lies, and its rows. */
final case class SealedBatch(start: Long, bytes: Long, count: Int, crc: Long)

/** The records of one topic and partition in a sealed stretch, offsets `base` to `base + count - 1`. */
final case class SealedFile(
    topic: String,
    partition: Int,
    name: String,
    schema: Int,
    extras: Array[String],
    base: Long,
    count: Long,
    batches: Array[SealedBatch])

/** What stands at the beginning of a stretch: the catalog before its first frame, and the files if it is sealed.
  *
  * @param end the byte where frames begin
  */
final case class Prelude(identity: String, topics: Map[String, Standing], files: Array[SealedFile], end: Long)

object Prelude {
  private val Magic = ByteBuffer.wrap("PENSTOCK".getBytes).order(ByteOrder.LITTLE_ENDIAN).getLong
  private val Version = 2
  val Front = 24

  /** The prelude of `file`, or None if it is damaged. */
  def of(file: ReadFile): Option[Prelude] = {
    val front = new Array[Byte](Front)
    val there = file.read(0, front, 0, Front) == Front
    val found = ByteBuffer.wrap(front).order(ByteOrder.LITTLE_ENDIAN)
    val length = found.getInt(12)
    if (!there || found.getLong(0) != Magic || found.getInt(8) != Version || length < 0 || length > file.size - Front) return None
    val text = new Array[Byte](length)
    val crc = new CRC32
    crc.update(front, 0, 16)
    if (file.read(Front, text, 0, length) < length) return None
    crc.update(text)
    if (crc.getValue != (found.getInt(16) & 0xffffffffL)) return None
    try Some(parsed(text, Front + length))
    catch { case error: Exception => throw LogError.senseless(s"the prelude of ${file.path}", error) }
  }

  private def parsed(text: Array[Byte], end: Long): Prelude = {
    val found = Json.tree(text)
    val topics = Json.fields(found.get("topics")).map { case (name, topic) => name -> Standing.of(name, topic) }.toMap
    val files = Json.items(found.get("files")).map { file =>
      val batches = Json.items(file.get("batches")).map { batch =>
        SealedBatch(batch.get("start").asLong, batch.get("bytes").asLong, batch.get("count").asInt, batch.get("crc").asLong)
      }.toArray
      SealedFile(file.get("topic").asText, file.get("partition").asInt, file.get("name").asText, file.get("schema").asInt,
        Json.strings(file.get("extras")), file.get("base").asLong, file.get("count").asLong, batches)
    }.toArray
    Prelude(found.path("identity").asText, topics, files, end)
  }
}
