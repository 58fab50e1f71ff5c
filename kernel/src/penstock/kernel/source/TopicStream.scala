package penstock.kernel.source

import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.connector.read.streaming._
import penstock.kernel.engine.Moved
import penstock.kernel.log.{Log, Steps}

/** A topic as a source of micro-batches. Where a batch ends is decided for all sources of the query together, by their `Cut`. */
final class TopicStream(log: Log, options: ReadOptions, pieces: Pieces, source: String)
    extends MicroBatchStream with SupportsTriggerAvailableNow {
  private val cut = Cut.joined(source, options, log)

  override def initialOffset(): Offset = offset(if (options.startingFrame == 0) cut.earliest else options.startingFrame)

  override def getDefaultReadLimit: ReadLimit = options.maxRecords.fold(ReadLimit.allAvailable())(ReadLimit.maxRows)

  /** The limit is the query's, not the source's; only where Spark ignores limits it asks for another than the source named. */
  override def latestOffset(start: Offset, limit: ReadLimit): Offset =
    offset(cut.end(source, frame(start), limited = limit == getDefaultReadLimit))

  override def latestOffset(): Offset = throw new UnsupportedOperationException("Spark asks with a start and a limit")

  override def reportLatestOffset(): Offset = offset(cut.latest)

  override def prepareForTriggerAvailableNow(): Unit = cut.capNow()

  override def deserializeOffset(json: String): Offset = FrameOffset.of(json, log.identity, log.folder.toString)

  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = log.synchronized {
    val mark = log.refresh()
    Cut.check(log, frame(start), mark)
    Cut.check(log, frame(end), mark)
    pieces.between(frame(start), frame(end))
  }

  /** The watermark at `end`, if it is not the one that stood at `start`, or nobody has heard of that yet; and how it came there. */
  def moved(start: Offset, end: Offset): Option[Moved] = log.synchronized {
    val now = Stamps.before(log, options, frame(end))
    val known = Stamps.before(log, options, frame(start))
    val news = now != known || (now != Steps.None && start == initialOffset())
    Option.when(news)(Moved(now, Stamps.of(log, options, frame(start), frame(end)).bytes))
  }

  override def createReaderFactory(): PartitionReaderFactory = pieces.readers

  override def commit(end: Offset): Unit = ()

  override def stop(): Unit = Cut.forget(cut)

  override def toString: String = s"""topic "${options.topic}" of ${log.folder}"""

  private def offset(frame: Long): Offset = FrameOffset(log.identity, frame)

  private def frame(offset: Offset): Long = offset.asInstanceOf[FrameOffset].frame
}
