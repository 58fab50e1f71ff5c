package penstock.kernel.kafka

import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import penstock.kernel.json.{Moment, Utf8}

/** Raw topics: the bytes as they are, and the time that a header says, or the producer. */
final class RawDecoder(column: String => WritableColumnVector) extends Decoder {
  private val key = column("key")
  private val value = column("value")
  private val time = column("time")
  private val moment = new Moment

  override def reset(): Unit = ()

  override def read(message: Message, labels: Labels, row: Int): String = {
    val reason = if (labels.time == null) null else told(labels.time)
    put(key, row, if (reason eq null) message.key else null)
    put(value, row, if (reason eq null) message.value else null)
    if (time ne null) {
      time.putNotNull(row)
      if ((reason eq null) && labels.time != null) time.putLong(row, moment.micros)
      else if ((reason eq null) && message.time >= 0) time.putLong(row, message.time * 1000)
      else time.putNull(row)
    }
    reason
  }

  private def told(text: Array[Byte]): String =
    if (!Utf8.holds(text)) "its header with the time is not UTF-8"
    else if (!moment.time(text, 0, text.length)) "its header with the time is not a TIMESTAMP"
    else null

  private def put(column: WritableColumnVector, row: Int, bytes: Array[Byte]): Unit = if (column ne null) {
    if (bytes == null) column.putNull(row)
    else {
      column.putNotNull(row)
      column.putByteArray(row, bytes, 0, bytes.length)
    }
  }
}
