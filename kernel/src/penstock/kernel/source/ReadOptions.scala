package penstock.kernel.source

import java.util.concurrent.TimeUnit

import org.apache.spark.sql.catalyst.util.IntervalUtils
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.unsafe.types.UTF8String
import penstock.kernel.log.{By, Json, Log, LogError}

/** What is to be read, as the reader's options say it.
  *
  * @param path the folder of the log, absolute
  * @param delay how far the watermark stays behind the largest event time, in microseconds; None: only punctuation moves it
  * @param by whether the watermark is that of all records together, or the least of the partitions' or the producers' (`By`)
  * @param scope whose punctuation counts besides the one for everybody
  * @param fromFrame first frame of a batch read
  * @param untilFrame the frame after its last; None: as far as the log is committed
  * @param others the other streams of the pipeline whose watermarks count for rows of this one, by name
  * @param fromPlace the first place wanted, and `untilPlace` the one after the last: they may cut a frame
  */
final case class ReadOptions(
    path: String,
    topic: String,
    delay: Option[Long],
    by: String,
    scope: String,
    fromFrame: Long,
    untilFrame: Option[Long],
    fromPlace: Long,
    untilPlace: Option[Long],
    fromOffsets: Map[Int, Long],
    untilOffsets: Map[Int, Long],
    startingFrame: Long,
    maxRecords: Option[Long],
    maxFrames: Option[Long] = None,
    others: Map[String, ReadOptions] = Map.empty) {

  /** The offsets of a partition that are wanted: from this one on, and before that one. */
  def from(partition: Int): Long = fromOffsets.getOrElse(partition, 0L)
  def until(partition: Int): Long = untilOffsets.getOrElse(partition, Long.MaxValue)

  /** Whether any of the offsets `[low, high)` is wanted. */
  def allows(partition: Int, low: Long, high: Long): Boolean = low < until(partition) && high > from(partition)
}

object ReadOptions {
  def of(found: CaseInsensitiveStringMap): ReadOptions = {
    def text(name: String): Option[String] = Option(found.get(name))
    ReadOptions(
      path = Log.folder(text("path").getOrElse(throw missing("path", "the folder of the log"))).toString,
      topic = text("topic").getOrElse(throw missing("topic", "the topic to read")),
      delay = text("watermark").map(duration),
      by = text("watermarkBy").getOrElse(By.Stream),
      scope = text("scope").getOrElse(""),
      fromFrame = text("fromFrame").fold(0L)(number("fromFrame", _)),
      untilFrame = text("untilFrame").map(number("untilFrame", _)),
      fromPlace = text("fromPlace").fold(0L)(number("fromPlace", _)),
      untilPlace = text("untilPlace").map(number("untilPlace", _)),
      fromOffsets = text("fromOffsets").fold(Map.empty[Int, Long])(offsets("fromOffsets", _)),
      untilOffsets = text("untilOffsets").fold(Map.empty[Int, Long])(offsets("untilOffsets", _)),
      startingFrame = text("startingFrame").fold(0L)(number("startingFrame", _)),
      maxRecords = text("maxRecordsPerBatch").map(number("maxRecordsPerBatch", _)),
      maxFrames = text("maxFramesPerBatch").map(number("maxFramesPerBatch", _)),
      others = text("streams").fold(Map.empty[String, ReadOptions])(streams(found, _)))
  }

  /** Each with the options that it has of its own. */
  private def streams(options: CaseInsensitiveStringMap, text: String): Map[String, ReadOptions] =
    Json.fields(Json.tree(text)).map { case (name, own) =>
      val all = new java.util.HashMap[String, String]()
      Seq("path", "scope").foreach(each => Option(options.get(each)).foreach(all.put(each, _)))
      Json.fields(own).foreach { case (option, value) => all.put(option, value.asText) }
      name -> of(new CaseInsensitiveStringMap(all))
    }.toMap

  private def number(name: String, text: String): Long =
    text.toLongOption.filter(_ >= 0).getOrElse(throw new LogError(s"option $name is no number", s"It is \"$text\"."))

  private def duration(text: String): Long =
    try {
      val found = IntervalUtils.stringToInterval(UTF8String.fromString(text))
      if (found.months != 0) throw new IllegalArgumentException("months differ in length")
      IntervalUtils.getDuration(found, TimeUnit.MICROSECONDS)
    } catch {
      case error: RuntimeException =>
        throw new LogError("option watermark is no duration", s"It is \"$text\": ${error.getMessage}", "Write it as: 10 seconds.")
    }

  private def offsets(name: String, text: String): Map[Int, Long] =
    try Json.fields(Json.tree(text)).map { case (partition, offset) => partition.toInt -> offset.longValue }.toMap
    catch {
      case _: Exception => throw new LogError(s"option $name cannot be read", s"It is \"$text\".", "Write it as: {\"0\": 10, \"1\": 12}.")
    }

  private def missing(name: String, what: String): LogError =
    new LogError(s"option $name is missing", hint = s"It names $what.")
}
