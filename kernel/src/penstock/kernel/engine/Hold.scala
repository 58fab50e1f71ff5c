package penstock.kernel.engine

import java.util.Comparator
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import penstock.kernel.state.State

/** Keeps rows until they are complete.
  *
  * In: changes of rows; the key has the time at which they are. State: the rows with their tallies, until then.
  * Out: the rows that are there at that time; what changes afterwards passes.
  */
final case class Hold(id: Int, keyWidth: Int, width: Int, edges: Seq[Edge], override val timing: Option[Timing]) extends Patient {
  override def orders: Array[Comparator[Array[Byte]]] = Array(Operator.Bytes)

  @transient private lazy val row = new UnsafeRow(width)

  override def run(key: UnsafeRow, rows: Rows, state: State, out: Output): Unit = {
    rows.consolidate()
    var i = 0
    while (i < rows.size) {
      out.emit(Envelope.read(rows(i), row), Envelope.weight(rows(i)), Envelope.stamp(rows(i)), Envelope.place(rows(i)))
      i += 1
    }
  }

  override def gather(key: UnsafeRow, rows: Rows, state: State): Unit = {
    rows.consolidate()
    var i = 0
    while (i < rows.size) {
      Tally.count(state.entries(0), rows(i))
      i += 1
    }
  }

  override def show(key: UnsafeRow, state: State, out: Output): Unit = {
    val cursor = state.entries(0).ascending
    while (cursor.next()) {
      row.pointTo(cursor.key, cursor.key.length)
      out.emit(row, Tally.weight(cursor.value), Tally.stamp(cursor.value), Tally.place(cursor.value))
    }
    state.clear()
  }
}
