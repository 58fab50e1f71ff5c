package penstock.kernel.kafka

import java.nio.charset.StandardCharsets.UTF_8
import java.util.LinkedHashMap

import org.apache.spark.sql.execution.vectorized.{OnHeapColumnVector, WritableColumnVector}
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}
import penstock.kernel.arrow.Made
import penstock.kernel.log.Topic
import penstock.kernel.source.Hidden

/** Messages of a topic become rows of a batch, with the columns that are wanted.
  *
  * In: messages. State: the columns of the batch, and how many rows they have.
  * Out: the same rows, whatever columns are wanted. A message that is no record of the topic is a row without values, with the reason and what the
  * message held; it is left out where the reason is not wanted.
  */
final class MessageRows(topic: Topic, wanted: StructType, capacity: Int) {
  private val vectors: Array[WritableColumnVector] = wanted.fields.map { field =>
    if (field.name.startsWith(Hidden.Watermark)) null else new OnHeapColumnVector(capacity, field.dataType)
  }
  private val decoder: Decoder = if (topic.isRaw) new RawDecoder(column) else new RowDecoder(topic, column, capacity)
  private val partition = column(Hidden.Partition)
  private val offset = column(Hidden.Offset)
  private val appendedAt = column(Hidden.AppendedAt)
  private val deleted = column(Hidden.Deleted)
  private val headers = column(Hidden.Headers)
  private val bad = column(Hidden.Bad)
  private val key = column(Hidden.Key)
  private val value = column(Hidden.Value)
  // Watermarks follow from places, wanted or not.
  private val place: WritableColumnVector = Option(column(Hidden.Place)).getOrElse(new OnHeapColumnVector(capacity, LongType))
  private val labels = new Labels
  private var rows = 0

  def size: Int = rows
  def isFull: Boolean = rows == capacity

  /** Begins another batch. */
  def begin(): Unit = {
    vectors.foreach(vector => if (vector ne null) vector.reset())
    place.reset()
    decoder.reset()
    rows = 0
  }

  def add(message: Message, partition: Int, place: Long, at: Long): Unit = {
    labels.take(message.headers)
    val row = rows
    val reason = decoder.read(message, labels, row)
    if ((reason ne null) && (bad eq null)) return
    rows += 1
    this.place.putLong(row, place)
    if (this.partition ne null) this.partition.putInt(row, partition)
    if (offset ne null) offset.putLong(row, message.offset)
    if (appendedAt ne null) appendedAt.putLong(row, at)
    if (deleted ne null) deleted.putBoolean(row, (reason eq null) && (message.value == null || labels.isDeleted))
    if (headers ne null) put(headers, row, labels.others)
    if (bad ne null) put(bad, row, if (reason eq null) null else reason.getBytes(UTF_8))
    if (key ne null) put(key, row, if (reason eq null) null else message.key)
    if (value ne null) put(value, row, if (reason eq null) null else message.value)
  }

  /** The rows so far; `stamps` make the columns of watermarks from those of places. */
  def batch(stamps: Map[String, ColumnVector => ColumnVector]): ColumnarBatch = {
    val columns = vectors.indices.map { at =>
      if (vectors(at) ne null) vectors(at) else stamps.get(wanted(at).name).fold(new Made.Null(TimestampType): ColumnVector)(_(place))
    }
    new ColumnarBatch(columns.toArray, rows)
  }

  private def column(name: String): WritableColumnVector = {
    val at = wanted.fieldNames.indexOf(name)
    if (at < 0) null else vectors(at)
  }

  private def put(column: WritableColumnVector, row: Int, bytes: Array[Byte]): Unit =
    if (bytes == null) column.putNull(row)
    else {
      column.putNotNull(row)
      column.putByteArray(row, bytes, 0, bytes.length)
    }

  private def put(column: WritableColumnVector, row: Int, found: LinkedHashMap[String, Array[Byte]]): Unit =
    if (found.isEmpty) column.putNull(row)
    else {
      val (names, values) = (column.getChild(0), column.getChild(1))
      val begin = names.getElementsAppended
      found.forEach { (name, bytes) =>
        val text = name.getBytes(UTF_8)
        names.appendByteArray(text, 0, text.length)
        values.appendByteArray(bytes, 0, bytes.length)
      }
      column.putNotNull(row)
      column.putArray(row, begin, found.size)
    }
}

/** Reads what a message says of the topic's own columns. */
trait Decoder {

  /** Reads a message into a row: null, or why it is none of the topic's. Then the row is all NULL. */
  def read(message: Message, labels: Labels, row: Int): String

  /** Another batch begins. */
  def reset(): Unit
}

/** The headers of a message: those that are the log's own, and the others; of one name the last counts. */
final class Labels {
  val others = new LinkedHashMap[String, Array[Byte]]
  var isDeleted = false
  var replaces: Array[Byte] = _
  var row: Array[Byte] = _
  var time: Array[Byte] = _

  def take(headers: Array[(String, Array[Byte])]): Unit = {
    others.clear()
    isDeleted = false
    replaces = null
    row = null
    time = null
    var at = 0
    while (at < headers.length) {
      val (name, found) = headers(at)
      val value = if (found == null) Array.emptyByteArray else found
      name match {
        case Labels.Deleted => isDeleted = true
        case Labels.Replaces => replaces = value
        case Labels.Row => row = value
        case Labels.Time => time = value
        case _ => if (!name.startsWith(Labels.Ours)) others.put(name, value)
      }
      at += 1
    }
  }
}

object Labels {
  val Ours = "penstock."
  val Deleted = "penstock.deleted"
  val Replaces = "penstock.replaces"
  val Row = "penstock.row"
  val Time = "penstock.time"
}
