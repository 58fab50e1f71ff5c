package penstock.kernel.engine

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Ascending, BoundReference, Expression, SortOrder, UnsafeProjection}
import org.apache.spark.sql.types.DataType
import penstock.kernel.state.{Cursor, Entries}
import scala.util.{Failure, Success, Try}

/** Rows of one side of a join stand in the order of `column`; those that can match a row of the other side lie between `from`, less the
  * `distance`, and `until`, expressions over that row. Either may be missing; the condition of the join still decides.
  *
  * Spark evaluates a condition only for rows that have a partner, so what fails here must not stop anything: a row for which a bound fails may
  * match every row, and where the order itself may fail (`loose`), rows for which it does stand with those that have NULL and may match every row.
  */
case class Span(column: Int, valueType: DataType, from: Option[Expression], until: Option[Expression], distance: Long, loose: Boolean) {
  def order(width: Int): RowOrder = RowOrder(width, Seq(SortOrder(BoundReference(column, valueType, nullable = true), Ascending)), ranked = 1)
}

/** A span at work. */
final class Bounds(span: Span, width: Int) {
  private val order = span.order(width)
  /** Before all rows that do not have NULL. */
  private val placed = order.end(RowOrder.Before)
  private val value = UnsafeProjection.create(Seq[Expression](BoundReference(0, span.valueType, nullable = true)))

  /** The rows that can match `other`. */
  def rows(other: InternalRow, rows: Entries): Cursor =
    Try((span.from.map(_.eval(other)), span.until.map(_.eval(other)))) match {
      case Failure(_) => rows.ascending
      case Success((from, until)) if !span.loose => between(from, until, rows)
      case Success((from, until)) => new Both(new Until(rows.ascending, order, placed), between(from, until, rows))
    }

  /** None where a bound is NULL. */
  private def between(from: Option[Any], until: Option[Any], rows: Entries): Cursor =
    if (from.contains(null) || until.contains(null)) Cursor.Empty
    else {
      val cursor = rows.from(from.flatMap(lowered).map(probe(_, RowOrder.Before)).getOrElse(placed))
      until.map(bound => new Until(cursor, order, probe(bound, RowOrder.After)): Cursor).getOrElse(cursor)
    }

  /** None where no value is as low: then every row may match, also those for which the distance leads beyond the largest value. */
  private def lowered(bound: Any): Option[Any] = bound match {
    case n: Long if span.distance > 0 => Option.when(n - span.distance < n)(n - span.distance)
    case n: Int if span.distance > 0 => Option.when(n - span.distance >= Int.MinValue)((n - span.distance).toInt)
    case other => Some(other)
  }

  private def probe(bound: Any, side: Byte): Array[Byte] = order.probe(value(InternalRow(bound)), side)
}

/** A walk that ends before `limit`. */
private final class Until(rows: Cursor, order: RowOrder, limit: Array[Byte]) extends Cursor {
  override def next(): Boolean = rows.next() && order.compare(rows.key, limit) < 0
  override def key: Array[Byte] = rows.key
  override def value: Array[Byte] = rows.value
  override def value_=(bytes: Array[Byte]): Unit = rows.value = bytes
}

/** One walk, then another. */
private final class Both(first: Cursor, second: => Cursor) extends Cursor {
  private var at = first
  override def next(): Boolean = at.next() || ((at eq first) && {
    at = second
    at.next()
  })
  override def key: Array[Byte] = at.key
  override def value: Array[Byte] = at.value
  override def value_=(bytes: Array[Byte]): Unit = at.value = bytes
}
