package penstock.kernel.source

import org.apache.spark.SparkContext
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.types.StructType
import penstock.kernel.kafka.Origin
import penstock.kernel.log.Log

/** Plans what tasks read of a topic, with the columns that were asked for. */
final class Pieces(log: Log, options: ReadOptions, topic: StructType, columns: StructType) {

  def readers: PartitionReaderFactory =
    if (Origin.isIn(log.folder)) new KafkaReaders(log.topic(options.topic), columns) else new PieceReaders(Wanted.of(columns, topic, options.others.keys))

  /** The records of frames `[from, until)`; of a topic as it stands there, where that is what is asked for (`moment`): who reads on sees
    * newer records for those that are compacted meanwhile.
    */
  def between(from: Long, until: Long, moment: Option[Moment] = None): Array[InputPartition] = log.synchronized {
    val chunks = new Plan(log, options, moment).chunks(from, until)
    val own = Seq(Hidden.Watermark -> options) ++ options.others.map { case (stream, how) => Hidden.watermarkOf(stream) -> how }
    val stamps = own.filter { case (column, _) => columns.fieldNames.contains(column) }.map { case (column, how) => column -> Stamps.of(log, how, from, until) }.toMap
    val origin = Origin.in(log.folder)
    Piece.divided(chunks, SparkContext.getOrCreate().defaultParallelism).map { run =>
      val within = stamps.map { case (column, all) => column -> all.within(run.map(_.frame).min, run.map(_.until).max) }
      new Piece(options, run, within, moment, origin): InputPartition
    }
  }
}
