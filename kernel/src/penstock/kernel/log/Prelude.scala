package penstock.kernel.log

import java.nio.{ByteBuffer, ByteOrder}
import java.util.zip.CRC32

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
  def of(file: ReadFile): Option[Prelude] = text(file).map { text =>
    try parsed(text, Front + text.length)
    catch { case error: Exception => throw LogError.senseless(s"the prelude of ${file.path}", error) }
  }

  /** The JSON of a prelude, checked; None if it is damaged. */
  def text(file: ReadFile): Option[Array[Byte]] = {
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
    Option.when(crc.getValue == (found.getInt(16) & 0xffffffffL))(text)
  }

  private def parsed(text: Array[Byte], end: Long): Prelude = {
    val found = Json.tree(text)
    val topics = Json.fields(found.get("topics")).map { case (name, topic) => name -> Standing.of(name, topic) }.toMap
    Prelude(found.path("identity").asText, topics, SealedFiles.of(found.get("files")), end)
  }
}
