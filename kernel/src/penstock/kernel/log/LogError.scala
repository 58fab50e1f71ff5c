package penstock.kernel.log

/** The log cannot be read as asked: what is wrong, what was found, what to do. */
class LogError(primary: String, detail: String = "", hint: String = "")
    extends IllegalStateException(LogError.text(primary, detail, hint))

/** Bytes of the log are not what was written; they are never returned as data. */
final class DamagedLog(primary: String, detail: String, hint: String) extends LogError(primary, detail, hint)

object LogError {
  private def text(primary: String, detail: String, hint: String): String = {
    val more = Seq("  detail: " -> detail, "  hint:   " -> hint).filter(_._2.nonEmpty)
    (primary +: more.map { case (name, said) => name + said }).mkString("\n")
  }

  def damaged(topic: String, partition: Int, base: Long, count: Long, where: String): DamagedLog =
    new DamagedLog(
      s"""topic "$topic", partition $partition, offsets $base to ${base + count - 1} are damaged""",
      s"The checksum does not hold in $where.",
      "Restore the file from a copy, or read around these offsets.")
}
