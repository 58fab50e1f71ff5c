package penstock.kernel.source

import java.nio.file.{NoSuchFileException, Paths}
import java.util.ArrayDeque

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.vectorized.ColumnarBatch
import penstock.kernel.arrow.{ArrowFile, RecordBytes}
import penstock.kernel.log.{Log, LogError, ReadFile}

/** Makes readers at the executors; carries which columns are wanted. */
final class PieceReaders(columns: Array[Wanted]) extends PartitionReaderFactory {
  override def supportColumnarReads(piece: InputPartition): Boolean = true

  override def createReader(piece: InputPartition): PartitionReader[InternalRow] =
    throw new UnsupportedOperationException("the log is read by columns")

  override def createColumnarReader(piece: InputPartition): PartitionReader[ColumnarBatch] =
    new PieceReader(piece.asInstanceOf[Piece], columns)
}

/** Reads a piece, one record batch of the log at a time.
  *
  * Out: batches whose columns point into one byte array, which the next batch overwrites. Bytes are checked before they are looked at.
  * A chunk whose file has gone since it was planned, sealed or rewritten, is looked up again in the sealed stretch.
  */
final class PieceReader(piece: Piece, columns: Array[Wanted]) extends PartitionReader[ColumnarBatch] {
  private val ahead = new ArrayDeque[Chunk](java.util.Arrays.asList(piece.chunks: _*))
  private var file: ReadFile = _
  private var bytes = Array.emptyByteArray
  private var batch: ColumnarBatch = _

  override def next(): Boolean = {
    batch = null
    while (batch == null && !ahead.isEmpty) {
      val chunk = ahead.poll()
      try chunk.home match {
        case Home.Staged => unfold(chunk)
        case Home.Sparse => batch = readSparse(chunk)
        case _ => batch = read(chunk)
      } catch { case _: NoSuchFileException => relocate(chunk) }
    }
    batch != null
  }

  override def get(): ColumnarBatch = batch

  override def close(): Unit = if (file != null) file.close()

  private def read(chunk: Chunk): ColumnarBatch = {
    val record = if (columns.exists(_.isStored(chunk.layout))) stored(chunk) else null
    batchOf(chunk, record)
  }

  /** The rows with the offsets wanted; null if there are none. */
  private def readSparse(chunk: Chunk): ColumnarBatch = {
    val record = stored(chunk)
    val offsets = Wanted.offsets(chunk, record)
    def rowOf(offset: Long): Int = {
      var (low, high) = (0, record.rows)
      while (low < high) {
        val middle = (low + high) >>> 1
        if (offsets.getLong(middle) < offset) low = middle + 1 else high = middle
      }
      low
    }
    val (first, end) = (rowOf(chunk.base + chunk.skip), rowOf(chunk.base + chunk.skip + chunk.take))
    if (first == end) null else batchOf(chunk.copy(skip = first, take = end - first), record)
  }

  private def batchOf(chunk: Chunk, record: RecordBytes): ColumnarBatch =
    new ColumnarBatch(columns.map(_.vector(chunk, record, piece.stamps)), chunk.take)

  private def stored(chunk: Chunk): RecordBytes = {
    if (chunk.bytes > PieceReader.Most)
      throw new LogError(
        s"a record batch in ${chunk.file} has ${chunk.bytes} bytes", s"Spark reads up to ${PieceReader.Most}.", "Append in smaller parts.")
    val length = chunk.bytes.toInt
    // Somewhat larger than asked for, so that batches of about the same size need no new array.
    if (bytes.length < length) bytes = new Array[Byte](math.min(length + length / 4L, PieceReader.Most).toInt)
    val from = opened(chunk)
    val crc = from.readChecked(chunk.start, bytes, length)
    if (crc < 0 || (chunk.home != Home.Checked && crc != chunk.crc)) throw chunk.damaged(piece.options.topic)
    new RecordBytes(bytes, 0)
  }

  /** A staged file, once its checksum holds, becomes its record batches. */
  private def unfold(chunk: Chunk): Unit = {
    val from = opened(chunk)
    if (from.size != chunk.bytes || from.checksum() != chunk.crc) throw chunk.damaged(piece.options.topic)
    var (base, place) = (chunk.base, chunk.place)
    val batches = ArrowFile.batches(from).flatMap { found =>
      val part = chunk.copy(home = Home.Checked, start = found.start, bytes = found.bytes, place = place,
        base = base, count = found.rows, skip = 0, take = found.rows)
      base += found.rows
      place += found.rows
      part.between(chunk.base + chunk.skip, chunk.base + chunk.skip + chunk.take)
    }
    batches.reverse.foreach(ahead.addFirst)
  }

  private def relocate(chunk: Chunk): Unit = {
    val found = new Plan(Log.at(piece.options.path), piece.options, piece.moment).again(chunk)
    found.getOrElse(throw chunk.missing(piece.options.topic)).reverse.foreach(ahead.addFirst)
  }

  private def opened(chunk: Chunk): ReadFile = {
    val path = Paths.get(chunk.file)
    if (file == null || file.path != path) {
      close()
      file = null
      file = new ReadFile(path)
    }
    file
  }
}

object PieceReader {
  private val Most = Int.MaxValue - 64L
}
