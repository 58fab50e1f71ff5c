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

  /** The checksum holds, and yet it cannot be understood. */
  def senseless(what: String, error: Exception): DamagedLog =
    new DamagedLog(s"$what cannot be read", String.valueOf(error.getMessage).linesIterator.take(1).mkString, "Restore the file from a copy.")

  def gone(topic: String, partition: Int, offset: Long, begin: Long): LogError =
    new LogError(
      s"""topic "$topic", partition $partition, offset $offset is kept no longer""",
      s"The first offset that is there is $begin.",
      "Read from there on. How long records are kept: penstock log describe")

  def damaged(topic: String, partition: Int, base: Long, count: Long, why: String): DamagedLog =
    new DamagedLog(
      s"""topic "$topic", partition $partition, offsets $base to ${base + count - 1} are damaged""",
      why,
      "Restore the file from a copy, or read around these offsets.")
}
