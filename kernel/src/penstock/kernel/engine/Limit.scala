package penstock.kernel.engine

import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import penstock.kernel.state.Entries

/** One bound of a frame at work: how far the frame of a row reaches, on a way up (the frame's end) or down (its beginning).
  *
  * A bound by rows is `ahead` copies beyond the row on that way; any other is a probe that stands just beyond the frame.
  */
final class Limit(order: RowOrder, bound: Bound, val way: Way) {
  private val row = new UnsafeRow(order.width)
  private val value = bound match {
    case Bound.Value(expression, _) => UnsafeProjection.create(Seq(expression))
    case _ => null
  }
  val byRows: Boolean = bound.isInstanceOf[Bound.Rows]
  val unbounded: Boolean = bound == Bound.Unbounded
  val ahead: Long = bound match {
    case Bound.Rows(offset) => if (way.up) offset else -offset
    case _ => 0L
  }
  private var ofRow: Array[Byte] = null
  private var probed: Array[Byte] = null

  /** Whether a row lies no further than the frame of `of` reaches on this way; `distance` is how many copies it lies beyond `of`. */
  def reaches(of: Array[Byte], row: Array[Byte], distance: Long): Boolean =
    if (unbounded) true
    else if (byRows) distance <= ahead
    else way.compare(row, probe(of)) < 0

  def probe(of: Array[Byte]): Array[Byte] = {
    if (ofRow ne of) {
      probed = bound match {
        case Bound.Peers => order.peers(of, way.far)
        case Bound.BeforePeers => order.peers(of, way.near)
        case Bound.Value(_, following) => valueProbe(of, following)
        case other => throw new IllegalStateException(s"$other has no probe")
      }
      ofRow = of
    }
    probed
  }

  private def valueProbe(of: Array[Byte], following: Boolean): Array[Byte] = {
    row.pointTo(of, of.length)
    val bounding = value(row)
    val own = order.valuesOf(of)
    val sign = order.compareValues(bounding, own)
    val overflowed = if (bounding.isNullAt(0)) !own.isNullAt(0) else if (following) sign < 0 else sign > 0
    if (overflowed) order.end(if (following) RowOrder.After else RowOrder.Before) else order.probe(bounding, way.far)
  }

  /** The first row on this way whose frame reaches `change`, or `change` itself; and the number of copies from there to `change`. */
  def firstReaching(entries: Entries, change: Array[Byte]): (Array[Byte], Long) = bound match {
    case Bound.Unbounded => (null, 0L)
    case Bound.Rows(_) => way.behind(entries, change, ahead)
    case Bound.Peers => (order.peers(change, way.near), 0L)
    case Bound.BeforePeers => (change, 0L)
    case Bound.Value(_, _) => (firstByValue(entries, change), 0L)
  }

  private def firstByValue(entries: Entries, change: Array[Byte]): Array[Byte] = {
    var found = change
    val cursor = way.back(entries, change)
    while (cursor.next() && way.compare(change, probe(cursor.key)) < 0) found = cursor.key
    found
  }
}
