package penstock.kernel.engine

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{JoinedRow, UnsafeRow}
import org.apache.spark.unsafe.Platform
import penstock.kernel.state.State

/** A table without a key: a bag of rows, each as often as it was added and not taken away.
  *
  * In: records of one row, which is their key; weight +1 adds it, -1 takes one away, in the order of place. The row that they carry is
  * the partition and offset of the record, and where changes go on with the record that makes them, itself as JSON.
  * State: how often the row is there, absent when it is not.
  * Out: one change per batch, or with `steps` per record; a deletion that finds nothing becomes a dead letter instead.
  */
case class Bag(id: Int, keyWidth: Int, edges: Seq[Edge], letters: Edge, steps: Option[TableSteps] = None) extends Operator {
  @transient private lazy val letter = new Route(letters)
  @transient private lazy val record = new UnsafeRow(Bag.RecordWidth)
  @transient private lazy val whole = new UnsafeRow(TableSteps.Record.length)
  @transient private lazy val both = new JoinedRow()

  override def run(key: UnsafeRow, rows: Rows, state: State, out: Output): Unit = {
    rows.sortByPlace()
    val old = if (state.value == null) 0L else Platform.getLong(state.value, Platform.BYTE_ARRAY_OFFSET)
    var count = old
    var i = 0
    while (i < rows.size) {
      val weight = Envelope.weight(rows(i))
      if (count + weight < 0) out.send(deadLetter(rows(i), key))
      else {
        count += weight
        if (steps.isDefined) out.emit(told(key, rows(i)), weight, Envelope.stamp(rows(i)), Envelope.place(rows(i)))
      }
      i += 1
    }
    if (count != old) {
      if (steps.isEmpty) out.emit(key, count - old, rows.lastStamp, rows.lastPlace)
      state.value = if (count == 0) null else bytesOf(count)
    }
  }

  private def told(key: UnsafeRow, envelope: Array[Byte]): InternalRow =
    if (steps.flatMap(_.told).isEmpty) key else both(key, Envelope.read(envelope, whole))

  private def deadLetter(envelope: Array[Byte], key: UnsafeRow): Array[Byte] =
    letter.envelope(both(key, Envelope.read(envelope, record)), 1, Envelope.stamp(envelope), Envelope.place(envelope))

  private def bytesOf(count: Long): Array[Byte] = {
    val bytes = new Array[Byte](8)
    Platform.putLong(bytes, Platform.BYTE_ARRAY_OFFSET, count)
    bytes
  }
}

object Bag {
  /** Partition and offset. */
  val RecordWidth = 2
}
