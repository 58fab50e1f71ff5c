package penstock.kernel.source

import org.apache.spark.sql.connector.read.streaming.Offset
import penstock.kernel.log.{Json, LogError}

/** How far a query has read: the next frame, of the log with this identity. */
final case class FrameOffset(log: String, frame: Long) extends Offset {
  override val json: String = s"""{"log":"$log","frame":$frame}"""
}

object FrameOffset {

  /** The offset of a checkpoint; refused if it is of another log than the one that is read now. */
  def of(json: String, log: String, folder: String): FrameOffset = {
    val found = Json.tree(json)
    if (found.path("log").asText != log)
      throw new LogError(
        "the checkpoint was made with another log",
        s"It reads log ${found.path("log").asText}; the log at $folder is $log.",
        "Give the checkpoint its own log, or start with a new checkpoint.")
    FrameOffset(log, found.get("frame").asLong)
  }
}
