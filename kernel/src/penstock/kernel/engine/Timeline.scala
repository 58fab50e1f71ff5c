package penstock.kernel.engine

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.TimestampType
import penstock.kernel.state.{Cursor, Entries}

/** When rows that stand in the order of a time are over, and when they can go.
  *
  * @param column where the time stands in the row
  * @param over so many microseconds after its time nothing changes a row's answer; `Deadline.Never` where that is not known
  * @param kept so many after its time nobody needs the row
  */
case class Ages(column: Int, over: Long, kept: Long)

/** Rows of one key in the order of their times. A row without a time is over from the start, or with `lasting` never. */
final class Timeline(ages: Ages, order: RowOrder, lasting: Boolean) {
  private val row = new UnsafeRow(order.width)
  private val value = UnsafeProjection.create(Seq[Expression](BoundReference(0, TimestampType, nullable = false)))

  def isOver(of: UnsafeRow, watermark: Long): Boolean =
    if (of.isNullAt(ages.column)) !lasting else Timeline.after(of.getLong(ages.column), ages.over) <= watermark

  /** The rows that were not over when the watermark was `before`, and are `now`. */
  def each(rows: Entries, before: Long, now: Long)(visit: (UnsafeRow, Cursor) => Unit): Unit = if (ages.over != Deadline.Never) {
    val cursor = if (before == Windows.None) timed(rows) else rows.from(probe(before - ages.over, RowOrder.After))
    while (cursor.next() && isOver(pointed(cursor.key), now)) visit(row, cursor)
  }

  /** Takes away the rows that nobody needs. */
  def free(rows: Entries, now: Long): Unit = {
    if (!lasting) {
      val without = rows.ascending
      while (without.next() && pointed(without.key).isNullAt(ages.column)) rows.remove(without.key)
    }
    if (ages.kept != Deadline.Never) {
      val cursor = timed(rows)
      while (cursor.next() && Timeline.after(timeOf(cursor.key), ages.kept) <= now) rows.remove(cursor.key)
    }
  }

  /** When something has to be done for the rows next: to take one away, or with `waits` to show one. */
  def deadline(rows: Entries, now: Long, waits: Boolean): Long = {
    val first = timed(rows)
    val freed = if (ages.kept != Deadline.Never && first.next()) Timeline.after(timeOf(first.key), ages.kept) else Deadline.Never
    if (!waits || ages.over == Deadline.Never) freed
    else {
      val waiting = if (now == Windows.None) timed(rows) else rows.from(probe(now - ages.over, RowOrder.After))
      if (waiting.next()) math.min(freed, Timeline.after(timeOf(waiting.key), ages.over)) else freed
    }
  }

  private def timed(rows: Entries): Cursor = rows.from(order.end(RowOrder.Before))
  private def probe(time: Long, side: Byte): Array[Byte] = order.probe(value(InternalRow(time)), side)
  private def timeOf(bytes: Array[Byte]): Long = if (pointed(bytes).isNullAt(ages.column)) Deadline.Never else row.getLong(ages.column)
  private def pointed(bytes: Array[Byte]): UnsafeRow = {
    row.pointTo(bytes, bytes.length)
    row
  }
}

private object Timeline {
  /** Times at the end of all times do not come. */
  def after(time: Long, span: Long): Long = {
    val sum = time + span
    if (span > 0 && sum < time) Deadline.Never else sum
  }
}
