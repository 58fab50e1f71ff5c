package penstock.kernel.source

import org.apache.spark.sql.connector.read.InputPartition
import penstock.kernel.kafka.Origin

import scala.collection.mutable.ArrayBuffer

/** What one task reads: chunks in the order of the log, with the stamps of their frames, by the column that has them; and Kafka's address, where
  * they lie there.
  */
final class Piece(
    val options: ReadOptions, val chunks: Array[Chunk], val stamps: Map[String, Stamps], val moment: Option[Moment], val origin: Option[Origin])
    extends InputPartition

object Piece {

  /** A task costs about 10 ms, so it should have this many records to read. */
  private val Least = 32 * 1024L

  /** Above this, one slow task would keep the others waiting: more tasks than slots. */
  private val Most = 1024 * 1024L

  /** Contiguous runs of `chunks` with about the same number of records each, for `slots` tasks at a time. */
  def divided(chunks: Seq[Chunk], slots: Int): Array[Array[Chunk]] = {
    val rows = chunks.iterator.map(_.take.toLong).sum
    if (rows == 0) return Array.empty
    val few = math.max(1L, math.min(slots.toLong, rows / Least))
    val pieces = if (few < slots) few else slots * math.max(1L, rows / (Most * slots))
    runs(chunks, rows, pieces.toInt)
  }

  /** Cuts at the border of a chunk where one is near, else inside: then two tasks read the bytes, each its part. */
  private def runs(chunks: Seq[Chunk], rows: Long, pieces: Int): Array[Array[Chunk]] = {
    val done = ArrayBuffer.empty[Array[Chunk]]
    val run = ArrayBuffer.empty[Chunk]
    val near = rows / pieces / 8
    var seen = 0L
    def missing: Long = rows * (done.length + 1) / pieces - seen
    def add(chunk: Chunk): Unit = { run += chunk; seen += chunk.take }
    def finish(): Unit = { done += run.toArray; run.clear() }
    chunks.foreach { chunk =>
      var rest = chunk
      while (rest.take - missing > near) {
        if (missing > near || run.isEmpty) {
          val cut = rest.base + rest.skip + missing
          rest.between(0, cut).foreach(add)
          rest = rest.between(cut, Long.MaxValue).get
        }
        finish()
      }
      add(rest)
      if (missing <= 0) finish()
    }
    if (run.nonEmpty) finish()
    done.toArray
  }
}
