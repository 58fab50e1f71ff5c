package penstock.kernel.engine

import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, JoinedRow, UnsafeRow}
import org.apache.spark.unsafe.Platform
import penstock.kernel.state.State

/** Records that come when rows with their key are over.
  *
  * In: rows of a stream, each a time at which it is over (port 0), and changes of what corrects them, each the record that makes it (port 1), under one
  * key; in the order of the log.
  * State: the least of the times.
  * Out: once for every record that comes when the clock has reached that time: the record, how far the clock had come, and the time.
  */
case class Missed(id: Int, keyWidth: Int, edges: Seq[Edge]) extends Dated {
  override val dating: Option[Dating] = Some(Dating(clocks = 1, delay = 0, allowed = 0, waits = false))

  @transient private lazy val time = new UnsafeRow(1)
  @transient private lazy val record = new UnsafeRow(Missed.RecordWidth)
  @transient private lazy val letter = new JoinedRow()
  @transient private var watermarks = Watermarks.None

  override def hear(told: Watermarks): Unit = watermarks = told

  override def run(key: UnsafeRow, rows: Rows, state: State, before: Long, now: Long, deadline: Deadline, out: Output): Unit = run(key, rows, state, out)

  override def run(key: UnsafeRow, rows: Rows, state: State, out: Output): Unit = {
    rows.sortByStep(first = 1)
    val known = if (state.value == null) Deadline.Never else Platform.getLong(state.value, Platform.BYTE_ARRAY_OFFSET)
    var least = known
    var i = 0
    while (i < rows.size) {
      val envelope = rows(i)
      if (Envelope.port(envelope) == 0) least = math.min(least, Envelope.read(envelope, time).getLong(0))
      else if (i == 0 || Envelope.port(rows(i - 1)) == 0 || Envelope.place(rows(i - 1)) != Envelope.place(envelope)) tell(envelope, least, out)
      i += 1
    }
    if (least != known) state.value = Missed.bytesOf(least)
  }

  private def tell(envelope: Array[Byte], least: Long, out: Output): Unit = {
    val watermark = watermarks.at(0, Envelope.place(envelope))
    if (least <= watermark)
      out.emit(letter(Envelope.read(envelope, record), new GenericInternalRow(Array[Any](watermark, least))), 1, Envelope.stamp(envelope), Envelope.place(envelope))
  }
}

object Missed {
  /** Partition, offset and the record as JSON. */
  val RecordWidth = 3

  private def bytesOf(time: Long): Array[Byte] = {
    val bytes = new Array[Byte](8)
    Platform.putLong(bytes, Platform.BYTE_ARRAY_OFFSET, time)
    bytes
  }
}
