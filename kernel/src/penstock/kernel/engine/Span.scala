package penstock.kernel.engine

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Ascending, BoundReference, Expression, SortOrder, UnsafeProjection}
import org.apache.spark.sql.types.DataType
import penstock.kernel.state.{Cursor, Entries}

/** Rows of one side of a join stand in the order of `column`; those that can match a row of the other side lie between `from` and `until`,
  * expressions over that row. Either may be missing; the condition of the join still decides.
  */
case class Span(column: Int, valueType: DataType, from: Option[Expression], until: Option[Expression]) {
  def order(width: Int): RowOrder = RowOrder(width, Seq(SortOrder(BoundReference(column, valueType, nullable = true), Ascending)), ranked = 1)
}

/** A span at work. */
final class Bounds(span: Span, width: Int) {
  private val order = span.order(width)
  private val value = UnsafeProjection.create(Seq[Expression](BoundReference(0, span.valueType, nullable = true)))

  /** The rows that can match `other`; none where a bound is NULL. */
  def rows(other: InternalRow, rows: Entries): Cursor = {
    val from = span.from.map(_.eval(other))
    val until = span.until.map(_.eval(other))
    if (from.contains(null) || until.contains(null)) Cursor.Empty
    else {
      val cursor = from.map(bound => rows.from(probe(bound, RowOrder.Before))).getOrElse(rows.ascending)
      until.map(bound => new Until(cursor, order, probe(bound, RowOrder.After)): Cursor).getOrElse(cursor)
    }
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
