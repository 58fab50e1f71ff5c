package penstock.kernel.engine

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BasePredicate, Expression, Predicate, UnsafeProjection, UnsafeRow}

/** Where the rows of a source or an operator go: through a filter, under the key of the target, with the columns it wants.
  *
  * All expressions are bound to the row that is sent. The target's chain and the key's hash decide the group.
  */
case class Edge(to: Target, filter: Option[Expression], key: Seq[Expression], value: Seq[Expression])

/** An edge compiled, on the executor. */
final class Route(val edge: Edge) {
  private val filter: BasePredicate = edge.filter.map(Predicate.create(_)).orNull
  private val key = UnsafeProjection.create(edge.key)
  private val value = UnsafeProjection.create(edge.value)
  if (filter != null) filter.initialize(0)

  def takes(row: InternalRow): Boolean = filter == null || filter.eval(row)
  def keyOf(row: InternalRow): UnsafeRow = key(row)
  def valueOf(row: InternalRow): UnsafeRow = value(row)

  def envelope(row: InternalRow, weight: Long, stamp: Long, place: Long): Array[Byte] =
    Envelope.stamped(Envelope.of(edge.to, Envelope.Row, key(row), value(row)), weight, stamp, place)
}

/** What an operator gives out: each row goes along every edge that takes it. */
final class Output(routes: Array[Route], sink: Array[Byte] => Unit) {
  def emit(row: InternalRow, weight: Long, stamp: Long, place: Long): Unit = {
    var i = 0
    while (i < routes.length) {
      if (weight != 0 && routes(i).takes(row)) sink(routes(i).envelope(row, weight, stamp, place))
      i += 1
    }
  }
  /** An envelope that is not a row of the operator's answer: a dead letter. */
  def send(envelope: Array[Byte]): Unit = sink(envelope)
}
