package penstock.kernel.engine

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import penstock.kernel.state.State

/** A table with a key: the newest record of a key is its row.
  *
  * In: records of one key; weight +1 a row, -1 a deletion. Where both are at one place, the row counts.
  * State: the row, as the views need it; absent when deleted.
  * Out: at most two changes per batch, or where each record is a step, per record; the retraction before the assertion.
  */
case class Upsert(id: Int, keyWidth: Int, width: Int, edges: Seq[Edge], stepwise: Boolean = false) extends Operator {
  @transient private lazy val before = new UnsafeRow(width)
  @transient private lazy val after = new UnsafeRow(width)

  override def run(key: UnsafeRow, rows: Rows, state: State, out: Output): Unit =
    if (!stepwise) replace(newest(rows), state, out)
    else {
      rows.sortByStep()
      var i = 0
      while (i < rows.size) {
        // The first at a place is the one that counts there.
        if (i == 0 || Envelope.place(rows(i)) != Envelope.place(rows(i - 1))) replace(rows(i), state, out)
        i += 1
      }
    }

  private def replace(last: Array[Byte], state: State, out: Output): Unit = {
    val old = state.value
    val start = Envelope.rowStart(last)
    val gone = Envelope.weight(last) < 0
    val same = if (gone) old == null else old != null && java.util.Arrays.equals(old, 0, old.length, last, start, last.length)
    if (!same) {
      if (old != null) {
        before.pointTo(old, old.length)
        out.emit(before, -1, Envelope.stamp(last), Envelope.place(last))
      }
      if (gone) state.value = null
      else {
        out.emit(Envelope.read(last, after), 1, Envelope.stamp(last), Envelope.place(last))
        state.value = java.util.Arrays.copyOfRange(last, start, last.length)
      }
    }
  }

  private def newest(rows: Rows): Array[Byte] = {
    var found = rows(0)
    var i = 1
    while (i < rows.size) {
      val byPlace = java.lang.Long.compare(Envelope.place(rows(i)), Envelope.place(found))
      if (byPlace > 0 || byPlace == 0 && Envelope.weight(rows(i)) > 0) found = rows(i)
      i += 1
    }
    found
  }
}
