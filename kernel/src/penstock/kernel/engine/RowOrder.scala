package penstock.kernel.engine

import java.util.Comparator
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BaseOrdering, BoundReference, Expression, NullsFirst, SortOrder, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateOrdering
import org.apache.spark.unsafe.Platform

/** The order that Spark's sort expressions give to rows of `width` columns, on their bytes. `orders` are bound to the row.
  *
  * Rows whose first `ranked` orders are equal are peers; the orders after them decide between peers, and what still ties is left to
  * the collection, which goes by bytes.
  * Knows probes besides rows: the values of the ranked orders and one byte, 0 to stand before all rows that have these values, 1 to
  * stand after them. A probe's length is never a multiple of eight, a row's always is. Probes are not compared with each other.
  */
final case class RowOrder(width: Int, orders: Seq[SortOrder], ranked: Int) extends Comparator[Array[Byte]] with Serializable {
  require(ranked <= orders.length, s"$ranked of ${orders.length} orders cannot be ranked")

  @transient private lazy val ordering: BaseOrdering = GenerateOrdering.generate(orders)
  @transient private lazy val projection = UnsafeProjection.create(orders.take(ranked).map(_.child))
  @transient private lazy val byValues: BaseOrdering = GenerateOrdering.generate(orders.take(ranked).zipWithIndex.map { case (order, i) =>
    order.copy(child = BoundReference(i, order.child.dataType, nullable = true), sameOrderExpressions = Nil)
  })
  @transient private lazy val left = new UnsafeRow(width)
  @transient private lazy val right = new UnsafeRow(width)
  @transient private lazy val values = new UnsafeRow(ranked)

  override def compare(a: Array[Byte], b: Array[Byte]): Int =
    if (orders.isEmpty && !isProbe(a) && !isProbe(b)) 0
    else if (isProbe(a)) -compareToProbe(b, a)
    else if (isProbe(b)) compareToProbe(a, b)
    else ordering.compare(pointed(left, a), pointed(right, b))

  /** The order of the collection: ties go by bytes. */
  def total(a: Array[Byte], b: Array[Byte]): Int = {
    val sign = compare(a, b)
    if (sign != 0) sign else java.util.Arrays.compareUnsigned(a, b)
  }

  private def compareToProbe(row: Array[Byte], probe: Array[Byte]): Int = {
    val sign = if (probe.length == 1) 0 else {
      values.pointTo(probe, probe.length - 1)
      byValues.compare(valuesOf(row), values)
    }
    if (sign != 0) sign else if (probe(probe.length - 1) == RowOrder.Before) 1 else -1
  }

  /** Compares two rows of ranked values. */
  def compareValues(a: InternalRow, b: InternalRow): Int = byValues.compare(a, b)

  /** The ranked values of a row; they are overwritten by the next call. */
  def valuesOf(row: Array[Byte]): UnsafeRow = projection(pointed(right, row))

  /** Before or after all peers of a row. */
  def peers(row: Array[Byte], side: Byte): Array[Byte] = probe(valuesOf(row), side)

  /** Before or after all rows that have these values. */
  def probe(values: UnsafeRow, side: Byte): Array[Byte] = {
    val length = values.getSizeInBytes
    val bytes = new Array[Byte](length + 1)
    Platform.copyMemory(values.getBaseObject, values.getBaseOffset, bytes, Platform.BYTE_ARRAY_OFFSET, length)
    bytes(length) = side
    bytes
  }

  /** Before (or after) all rows whose first order is not NULL. */
  def end(side: Byte): Array[Byte] = {
    val nullsFirst = orders.head.nullOrdering == NullsFirst
    if (nullsFirst == (side == RowOrder.Before)) probe(nullValue, if (nullsFirst) RowOrder.After else RowOrder.Before) else Array(side)
  }
  private def nullValue: UnsafeRow =
    UnsafeProjection.create(Seq[Expression](BoundReference(0, orders.head.child.dataType, nullable = true)))(InternalRow(null))

  private def isProbe(bytes: Array[Byte]): Boolean = (bytes.length & 7) != 0
  private def pointed(row: UnsafeRow, bytes: Array[Byte]): UnsafeRow = {
    row.pointTo(bytes, bytes.length)
    row
  }
}

object RowOrder {
  val Before: Byte = 0
  val After: Byte = 1
}
