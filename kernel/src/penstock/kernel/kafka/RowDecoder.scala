package penstock.kernel.kafka

import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.types.{StructField, StructType}
import penstock.kernel.json.{JsonText, Members, NotJson, Reads, Unfit, Utf8}
import penstock.kernel.log.Topic
import penstock.kernel.source.Hidden

/** Rows as JSON or Avro, as docs/formats/kafka.md has them. `src/penstock/log/kafka/messages.py` reads the same, and refuses the same with the same
  * words.
  */
final class RowDecoder(topic: Topic, column: String => WritableColumnVector, capacity: Int) extends Decoder {
  private val columns = topic.declared.last
  private val corrected = topic.correction.map(new CorrectedTime(_, topic.eventTime.get, columns, column, capacity))
  private val reads = columns.fields.map(field => Reads.of(field.dataType, target(field.name)))
  private val avro = topic.avro.map(new AvroValuesReader(_, columns, target))
  private val free = Array.fill(columns.length)(false)
  private val members = new Members(columns.fieldNames, reads, free)
  private val keys = topic.key.map(columns.fieldIndex).toArray
  private val key = new Members(topic.key.toArray, keys.map(reads(_)), keys.map(_ => false))
  private val replaced = column(Hidden.Replaces)
  private val replaces = Members.of(
    StructType(columns.fields.map(field => StructField(field.name, field.dataType))),
    at => if (replaced eq null) null else replaced.getChild(at))
  /** What Spark takes for never NULL, whatever became of the record. */
  private val never = keys.filter(at => !columns(at).nullable).map(at => target(columns(at).name) -> columns(at).dataType).filter(_._1 ne null)
  /** What may not be NULL, in records and in deletions. */
  private val required = columns.fields.indices.filter(at => !columns(at).nullable && !topic.correction.exists(_ => topic.eventTime.contains(columns(at).name))).toArray
  private val text = new JsonText
  private var reason: String = _

  override def reset(): Unit = corrected.foreach(_.reset())

  override def read(message: Message, labels: Labels, row: Int): String = {
    reason = null
    replacing(labels, row)
    if (reason eq null) { if (message.value == null) deletion(message, labels, row) else value(message, labels, row) }
    if (reason ne null) {
      members.empty(row)
      never.foreach { case (column, what) => Zeros.put(column, what, row) }
      if (replaced ne null) replaced.putNull(row)
    } else corrected.foreach(_.make(row))
    reason
  }

  private def replacing(labels: Labels, row: Int): Unit =
    if (labels.replaces == null) { if (replaced ne null) replaced.putNull(row) }
    else {
      if (replaced ne null) replaced.putNotNull(row)
      fill(replaces, labels.replaces, "its header with the replaced row", row)
    }

  private def target(name: String): WritableColumnVector = corrected.fold(column(name))(_.column(name))

  private def value(message: Message, labels: Labels, row: Int): Unit = {
    if (avro.isEmpty) fill(members, message.value, "its value", row) else reason = avro.get.read(message.value, row)
    var at = 0
    while ((reason eq null) && at < required.length) {
      val field = required(at)
      val isPresent = if (avro.isEmpty) members.isPresent(field) else avro.get.isPresent(field)
      if (!isPresent && (!labels.isDeleted || keys.contains(field))) missing(field)
      at += 1
    }
  }

  private def deletion(message: Message, labels: Labels, row: Int): Unit = {
    if (labels.row == null) members.empty(row) else fill(members, labels.row, "its header with the row", row)
    if (reason eq null) {
      if (message.key == null || keys.isEmpty) reason = "it has no value, and no key to delete by"
      else parsed(message.key, "its key")(deletedKey(row))
    }
    if (reason eq null) keys.indices.find(at => !columns(keys(at)).nullable && !key.isPresent(at)).foreach(at => missing(keys(at)))
  }

  /** The key's columns: an object of them, or the bare value where the key is one column. */
  private def deletedKey(row: Int): Unit = {
    val isObject = text.peek() == '{'
    val start = text.at
    if (isObject) {
      val trouble = key.read(text, row)
      text.finish()
      if (key.hasOwn || keys.length > 1) unfit(trouble, "its key")
      else {
        text.at = start
        unfit(key.readOnly(text, row), "its key")
      }
    } else if (keys.length == 1) unfit(key.readOnly(text, row), "its key")
    else {
      text.skip()
      text.finish()
      reason = "its key is not a JSON object"
    }
  }

  private def fill(members: Members, bytes: Array[Byte], what: String, row: Int): Unit = parsed(bytes, what) {
    if (text.peek() == '{') {
      val trouble = members.read(text, row)
      text.finish()
      unfit(trouble, what)
    } else {
      text.skip()
      text.finish()
      reason = s"$what is not a JSON object"
    }
  }

  private def parsed(bytes: Array[Byte], what: String)(read: => Unit): Unit =
    if (!Utf8.holds(bytes)) reason = s"$what is not UTF-8"
    else {
      text.over(bytes)
      try {
        read
        text.finish()
      } catch { case NotJson => reason = s"$what is not JSON" }
    }

  private def unfit(trouble: (String, Unfit), what: String): Unit =
    if (trouble ne null) reason = s"""in $what, field "${trouble._1}${trouble._2.path}": ${trouble._2.reason(text)}"""

  private def missing(field: Int): Unit = reason = s"""field "${columns(field).name}" is NULL, and the column is NOT NULL"""
}
