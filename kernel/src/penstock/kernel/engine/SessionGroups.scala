package penstock.kernel.engine

import java.util.Comparator
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import penstock.kernel.state.State

/** Keeps an aggregate's answer for each session: a group whose key has the session's start, and whose answer has its end.
  *
  * In, State: as `aggregate` has it. A session that is over for good is forgotten.
  * Out: as `aggregate` gives it; of sessions that wait, when they are complete. One that was complete and is joined by a late row that moves its
  * end is taken back, and waits again.
  *
  * @param end where the session's end stands in the answer
  */
final case class SessionGroups(aggregate: Aggregate, end: Int, how: Dating) extends Dated {
  override def id: Int = aggregate.id
  override def keyWidth: Int = aggregate.keyWidth
  override def edges: Seq[Edge] = aggregate.edges
  override def orders: Array[Comparator[Array[Byte]]] = aggregate.orders
  override def dating: Option[Dating] = Some(how)
  override def hasSessions: Boolean = true

  override def run(key: UnsafeRow, rows: Rows, state: State, out: Output): Unit = aggregate.run(key, rows, state, out)

  override def run(key: UnsafeRow, rows: Rows, state: State, before: Long, now: Long, deadline: Deadline, out: Output): Unit = {
    val gathered = aggregate.known(state)
    val entries = aggregate.entriesOf(state)
    val old = if (state.value == null) null else aggregate.answer(key, gathered, entries).copy()
    val there = if (rows.size == 0) old != null else aggregate.taken(gathered, rows, state, entries)
    val made = if (!there) null else if (rows.size == 0) old else aggregate.answer(key, gathered, entries)
    val was = if (isShown(old, before)) old else null
    val is = if (isShown(made, now)) made else null
    if (was != is) {
      if (was != null) out.emit(was, -1, rows.lastStamp, rows.lastPlace)
      if (is != null) out.emit(is, 1, rows.lastStamp, rows.lastPlace)
    }
    val next = deadlineOf(made, now)
    if (next <= now) state.clear()
    deadline.move(deadlineOf(old, before), if (next <= now) Deadline.Never else next)
    deadline.opened((if (made == null || next <= now) 0 else 1) - (if (old == null) 0 else 1))
  }

  private def isShown(answer: UnsafeRow, watermark: Long): Boolean = answer != null && (!how.waits || Sessions.complete(answer.getLong(end), how) <= watermark)

  /** A session that is not complete waits for that first. */
  private def deadlineOf(answer: UnsafeRow, watermark: Long): Long =
    if (answer == null) Deadline.Never
    else if (!isShown(answer, watermark)) Sessions.complete(answer.getLong(end), how)
    else Sessions.over(answer.getLong(end), how)
}
