package penstock.kernel.source

import org.apache.spark.SparkContext
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.types.StructType
import penstock.kernel.log.Log

/** Plans what tasks read of a topic, with the columns that were asked for. */
final class Pieces(log: Log, options: ReadOptions, topic: StructType, columns: StructType) {

  def readers: PartitionReaderFactory = new PieceReaders(Wanted.of(columns, topic))

  /** The records of frames `[from, until)`. */
  def between(from: Long, until: Long): Array[InputPartition] = log.synchronized {
    val chunks = new Plan(log, options).chunks(from, until)
    val stamps = if (columns.fieldNames.contains(Hidden.Watermark)) Stamps.of(log, options, from, until) else Stamps.none
    Piece.divided(chunks, SparkContext.getOrCreate().defaultParallelism).map { run =>
      val within = stamps.within(run.map(_.frame).min, run.map(_.until).max)
      new Piece(options, run, within): InputPartition
    }
  }
}
