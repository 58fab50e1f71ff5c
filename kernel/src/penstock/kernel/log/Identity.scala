package penstock.kernel.log

import java.nio.file.{Files, NoSuchFileException, Path}

import com.fasterxml.jackson.core.JsonProcessingException

import scala.jdk.CollectionConverters._
import scala.util.Using

/** What tells one log from another: made once with the log, kept in every offset that a reader stores.
  *
  * The preludes have it under a checksum; identity.json is asked only where none of them can be read.
  */
object Identity {
  private val Format = 2

  def of(folder: Path): String = {
    val preludes = newest(folder.resolve("journal")).iterator ++ newest(folder.resolve("sealed")).map(_.resolve("headers.journal"))
    preludes.flatMap(inPrelude).nextOption().getOrElse(inFile(folder))
  }

  private def newest(folder: Path): Seq[Path] =
    if (!Files.isDirectory(folder)) Nil
    else Using.resource(Files.list(folder))(_.iterator.asScala.filter(_.getFileName.toString.matches(Stretch.Number + ".*")).toSeq.sorted.reverse)

  private def inPrelude(path: Path): Option[String] =
    try Using.resource(new ReadFile(path))(Prelude.of).map(_.identity).filter(_.nonEmpty)
    catch { case _: NoSuchFileException | _: DamagedLog => None }

  private def inFile(folder: Path): String = {
    val path = folder.resolve("identity.json")
    def unreadable = new DamagedLog(s"\"$path\" cannot be read", "No prelude can be read either.", "Restore it from a copy.")
    val found =
      try Json.tree(Files.readAllBytes(path))
      catch {
        case _: NoSuchFileException =>
          throw new LogError(s"there is no log at $folder", "It holds no identity.json.", "Open it once with Log.open, which makes it.")
        case _: JsonProcessingException => throw unreadable
      }
    if (!found.path("identity").isTextual) throw unreadable
    if (found.path("format").asInt != Format)
      throw new LogError(
        s"the log at $folder has format ${found.path("format")}",
        s"This Penstock reads format $Format.",
        "Use the Penstock that wrote it.")
    found.get("identity").asText
  }
}
