package penstock.kernel.engine

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import penstock.kernel.state.State

/** A view whose key was declared: one row at most under each key, when a batch ends.
  *
  * In: changes of the view's rows under one key.
  * State: the row; absent when there is none.
  * Out: at most two changes per batch, the retraction before the assertion. A key with several rows goes to `doubled` instead, and the
  * batch is not to be committed.
  */
case class Unique(id: Int, keyWidth: Int, width: Int, edges: Seq[Edge], doubled: Edge) extends Operator {
  @transient private lazy val row = new UnsafeRow(width)
  @transient private lazy val refusal = new Route(doubled)

  override def run(key: UnsafeRow, rows: Rows, state: State, out: Output): Unit = {
    rows.consolidate()
    val old = state.value
    var count = if (old == null) 0L else 1L
    var added: Array[Byte] = null
    var i = 0
    while (i < rows.size) {
      count += Envelope.weight(rows(i))
      if (Envelope.weight(rows(i)) > 0) added = rows(i)
      i += 1
    }
    if (count > 1) out.send(refusal.envelope(key, 1, rows.lastStamp, rows.lastPlace))
    else replace(old, if (count == 0) null else if (added == null) old else Bytes.ofRow(added).bytes, rows, state, out)
  }

  private def replace(old: Array[Byte], kept: Array[Byte], rows: Rows, state: State, out: Output): Unit =
    if (!java.util.Arrays.equals(old, kept)) {
      if (old != null) emit(old, -1, rows, out)
      if (kept != null) emit(kept, 1, rows, out)
      state.value = kept
    }

  private def emit(bytes: Array[Byte], weight: Long, rows: Rows, out: Output): Unit = {
    row.pointTo(bytes, bytes.length)
    out.emit(row, weight, rows.lastStamp, rows.lastPlace)
  }
}

/** Two rows under the declared key of a view. */
final class DoubledKey(val view: String, val key: String) extends RuntimeException(s"view $view has several rows under its key $key")
