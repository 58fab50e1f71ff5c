package penstock.kernel.log

import java.nio.file.{Files, NoSuchFileException, Path}

/** What tells one log from another: made once with the log, kept in every offset that a reader stores. */
object Identity {
  private val Format = 1

  def of(folder: Path): String = {
    val bytes =
      try Files.readAllBytes(folder.resolve("identity.json"))
      catch {
        case _: NoSuchFileException =>
          throw new LogError(s"there is no log at $folder", "It holds no identity.json.", "Open it once with Log.open, which makes it.")
      }
    val found = Json.tree(bytes, 0, bytes.length)
    if (found.path("format").asInt != Format)
      throw new LogError(
        s"the log at $folder has format ${found.path("format")}",
        s"This Penstock reads format $Format.",
        "Use the Penstock that wrote it.")
    found.get("identity").asText
  }
}
