package penstock.kernel.source

import java.util
import java.util.EnumSet

import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.catalog.TableCapability.{BATCH_READ, MICRO_BATCH_READ}
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import penstock.kernel.log.{Log, Place}

/** A topic of a log as a table: its newest columns, and the hidden ones as metadata columns. */
final class TopicTable(log: Log, columns: StructType, topic: String, others: Iterable[String]) extends Table with SupportsRead with SupportsMetadataColumns {
  override def name(): String = topic
  override def schema(): StructType = columns
  override def metadataColumns(): Array[MetadataColumn] = Hidden.metadata(columns, others)
  override def capabilities(): util.Set[TableCapability] = EnumSet.of(BATCH_READ, MICRO_BATCH_READ)
  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = new TopicScanBuilder(log, columns, ReadOptions.of(options))
}

/** Takes the columns that a query needs; until told otherwise these are all, the hidden ones too, which cost nothing unless they are looked at. */
final class TopicScanBuilder(log: Log, topic: StructType, options: ReadOptions) extends ScanBuilder with SupportsPushDownRequiredColumns {
  private val all = StructType(topic.fields ++ Hidden.columns(topic, options.others.keys).fields)
  private var columns = all

  override def pruneColumns(required: StructType): Unit = columns = StructType(required.fieldNames.map(all(_)))

  override def build(): Scan = new TopicScan(log, options, topic, columns)
}

/** A read of a topic: as a batch of what is committed when it is planned, or as a stream. */
final class TopicScan(log: Log, options: ReadOptions, topic: StructType, columns: StructType) extends Scan {
  override def readSchema(): StructType = columns
  override def description(): String = s"""penstock ${options.topic} of ${log.folder}"""
  override def columnarSupportMode(): Scan.ColumnarSupportMode = Scan.ColumnarSupportMode.SUPPORTED

  // Spark may ask again while the query runs, when more is committed: the answer stays the same.
  private lazy val batch: Batch = {
    val mark = log.refresh()
    val ends = options.untilFrame ++ options.untilPlace.map(Places.frameAfter)
    val until = ends.minOption.getOrElse(mark.next)
    val begin = math.max(options.fromFrame, options.fromPlace >> Place.IndexBits)
    val from = if (begin == 0) log.earliest else begin
    Cut.check(log, from, mark)
    Cut.check(log, until, mark)
    TopicBatch(log.identity, options, columns, from, until)(new Pieces(log, options, topic, columns), log.compacted(options.topic))
  }

  override def toBatch: Batch = batch

  override def toMicroBatchStream(source: String): MicroBatchStream =
    new TopicStream(log, options, new Pieces(log, options, topic, columns), source)
}

/** Frames `[from, until)` of a topic. Equal ones are read once where Spark can share them. */
final case class TopicBatch(identity: String, options: ReadOptions, columns: StructType, from: Long, until: Long)(pieces: Pieces, compacted: Long)
    extends Batch {
  override def planInputPartitions(): Array[InputPartition] = pieces.between(from, until, Some(Moment(until, compacted)))
  override def createReaderFactory(): PartitionReaderFactory = pieces.readers
}
