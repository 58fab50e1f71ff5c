package penstock.kernel.source

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.ColumnarBatch
import penstock.kernel.kafka.{Clients, Message, MessageRows, Messages, Origin}
import penstock.kernel.log.Topic

/** Makes readers of Kafka at the executors; carries what is known of the topic, and which columns are wanted. */
final class KafkaReaders(topic: Topic, columns: StructType) extends PartitionReaderFactory {
  override def supportColumnarReads(piece: InputPartition): Boolean = true

  override def createReader(piece: InputPartition): PartitionReader[InternalRow] =
    throw new UnsupportedOperationException("the log is read by columns")

  override def createColumnarReader(piece: InputPartition): PartitionReader[ColumnarBatch] = {
    val inKafka = piece.asInstanceOf[Piece]
    new KafkaReader(inKafka, inKafka.origin.get, new MessageRows(topic, columns, KafkaReader.Rows))
  }
}

/** Reads a piece whose records lie in Kafka.
  *
  * Out: batches whose columns the next batch overwrites. Chunks that follow each other in a partition are fetched together.
  */
final class KafkaReader(piece: Piece, origin: Origin, rows: MessageRows) extends PartitionReader[ColumnarBatch] {
  private val chunks = piece.chunks
  private var at = 0
  private var end = 0
  private var messages: Messages = _

  override def next(): Boolean = {
    rows.begin()
    var message = following()
    while (message != null) {
      val chunk = chunks(at)
      rows.add(message, chunk.partition, chunk.place - chunk.base + message.offset, chunk.at)
      message = if (rows.isFull) null else following()
    }
    rows.size > 0
  }

  override def get(): ColumnarBatch = rows.batch(piece.stamps.map { case (name, stamps) => name -> (stamps.column(_)) })

  override def close(): Unit = if (messages != null) messages.close()

  /** The next message of a chunk, `at` being its index; null after the last. */
  private def following(): Message = {
    var message: Message = null
    while (message == null && (messages != null || at < chunks.length)) {
      if (messages == null) open()
      message = messages.next()
      if (message == null) {
        messages.close()
        messages = null
        at = end
      } else {
        while (message.offset >= high(chunks(at))) at += 1
        if (message.offset < low(chunks(at))) message = null
      }
    }
    message
  }

  /** Opens the run of chunks that begins at `at`. */
  private def open(): Unit = {
    val first = chunks(at)
    end = at + 1
    while (end < chunks.length && chunks(end).partition == first.partition && low(chunks(end)) - high(chunks(end - 1)) <= KafkaReader.Near) end += 1
    messages = Clients.found.messages(origin, piece.options.topic, first.partition, low(first), high(chunks(end - 1)))
  }

  private def low(chunk: Chunk): Long = chunk.base + chunk.skip
  private def high(chunk: Chunk): Long = chunk.base + chunk.skip + chunk.take
}

object KafkaReader {

  /** Rows of a batch. */
  private[source] val Rows = 4096

  /** Between two chunks, so many offsets are passed over rather than sought. */
  private val Near = 1000L
}
