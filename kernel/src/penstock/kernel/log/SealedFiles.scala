package penstock.kernel.log

import java.nio.file.{NoSuchFileException, Path}

import com.fasterxml.jackson.databind.JsonNode

import scala.util.Using

/** One record batch of a sealed file: where its message lies, its rows, and the offsets that it holds all that is kept of. */
final case class SealedBatch(start: Long, bytes: Long, count: Int, crc: Long, base: Long, end: Long)

/** The records of one topic and partition in a sealed stretch, offsets `base` to `base + count - 1`.
  *
  * @param sparse not all of these are there: a record's offset stands beside it
  * @param below the frame before which it was compacted
  */
final case class SealedFile(
    topic: String,
    partition: Int,
    name: String,
    schema: Int,
    extras: Array[String],
    base: Long,
    count: Long,
    sparse: Boolean,
    below: Long,
    batches: Array[SealedBatch])

/** Which files a sealed stretch has: told by its prelude, or by the file `files` in its folder once any of them was rewritten. */
object SealedFiles {

  /** As the file `files` says; None if there is none. */
  def in(folder: Path): Option[Array[SealedFile]] =
    try Using.resource(new ReadFile(folder.resolve("files"))) { file =>
      val text = Prelude.text(file).getOrElse(
        throw new DamagedLog(s"the list of files in $folder is damaged", "", "Restore the file from a copy."))
      Some(of(Json.tree(text).get("files")))
    } catch { case _: NoSuchFileException => None }

  def of(found: JsonNode): Array[SealedFile] = Json.items(found).map(file).toArray

  private def file(found: JsonNode): SealedFile = {
    val base = found.get("base").asLong
    var next = base
    val batches = Json.items(found.get("batches")).map { batch =>
      val count = batch.get("count").asInt
      val first = batch.path("base").asLong(next)
      next = batch.path("end").asLong(first + count)
      SealedBatch(batch.get("start").asLong, batch.get("bytes").asLong, count, batch.get("crc").asLong, first, next)
    }.toArray
    SealedFile(found.get("topic").asText, found.get("partition").asInt, found.get("name").asText, found.get("schema").asInt,
      Json.strings(found.get("extras")), base, found.get("count").asLong, found.path("sparse").asBoolean(false),
      found.path("below").asLong(0), batches)
  }
}
