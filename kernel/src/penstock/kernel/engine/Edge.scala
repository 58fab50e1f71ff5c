package penstock.kernel.engine

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BasePredicate, Expression, Generator, GenericInternalRow, JoinedRow, Predicate, UnsafeProjection, UnsafeRow}

/** Where the rows of a source or an operator go: through a filter, under the key of the target, with the columns it wants.
  *
  * `makers` come first, each making several rows of one, or none. All expressions are bound to the row that is sent, followed by what the makers
  * before have added. The target's chain and the key's hash decide the group.
  */
case class Edge(to: Target, filter: Option[Expression], key: Seq[Expression], value: Seq[Expression], makers: Seq[Maker] = Nil) {
  /** What a row has to pass before anything is made of it. */
  def first: Option[Expression] = makers.headOption.fold(filter)(_.filter)
  /** All that is computed on the way. */
  def expressions: Seq[Expression] = makers.flatMap(maker => maker.filter.toSeq :+ maker.generator) ++ filter ++ key ++ value
}

/** For every row that passes `filter`: the rows that `generator` makes of it, each behind the row itself; if there is none and `outer`, NULLs. */
case class Maker(filter: Option[Expression], generator: Generator, width: Int, outer: Boolean)

/** An edge compiled, on the executor. */
final class Route(val edge: Edge) {
  private val filter: BasePredicate = edge.filter.map(Route.predicate).orNull
  private val key = UnsafeProjection.create(edge.key)
  private val value = UnsafeProjection.create(edge.value)
  private val makers = edge.makers.map(new RunningMaker(_)).toArray
  /** Whether each row is one row, or none, at the end. */
  val plain: Boolean = makers.isEmpty
  /** Whether nobody takes the rows: they are made, and that is all. */
  val drops: Boolean = edge.to.operator == Target.Nowhere

  def takes(row: InternalRow): Boolean = filter == null || filter.eval(row)
  def keyOf(row: InternalRow): UnsafeRow = key(row)
  def valueOf(row: InternalRow): UnsafeRow = value(row)

  /** All rows that become of `row`. */
  def each(row: InternalRow)(action: InternalRow => Unit): Unit = made(row, 0, action)

  private def made(row: InternalRow, from: Int, action: InternalRow => Unit): Unit =
    if (from == makers.length) { if (takes(row)) action(row) }
    else makers(from).each(row)(made(_, from + 1, action))

  def envelope(row: InternalRow, weight: Long, stamp: Long, place: Long): Array[Byte] =
    Envelope.stamped(Envelope.of(edge.to, Envelope.Row, key(row), value(row)), weight, stamp, place)
}

object Route {
  def predicate(condition: Expression): BasePredicate = {
    val made = Predicate.create(condition)
    made.initialize(0)
    made
  }
}

/** A maker compiled, on the executor. */
private final class RunningMaker(maker: Maker) {
  private val filter: BasePredicate = maker.filter.map(Route.predicate).orNull
  private val nothing = new GenericInternalRow(maker.width)

  def each(row: InternalRow)(action: InternalRow => Unit): Unit = if (filter == null || filter.eval(row)) {
    val made = maker.generator.eval(row).iterator
    val joined = new JoinedRow()
    if (made.isEmpty) { if (maker.outer) action(joined(row, nothing)) }
    else made.foreach(each => action(joined(row, each)))
  }
}

/** What an operator gives out: each row goes along every edge that takes it. */
final class Output(routes: Array[Route], sink: Array[Byte] => Unit) {
  def emit(row: InternalRow, weight: Long, stamp: Long, place: Long): Unit = if (weight != 0) {
    var i = 0
    while (i < routes.length) {
      val route = routes(i)
      if (route.plain) { if (route.takes(row)) send(route, row, weight, stamp, place) }
      else route.each(row)(send(route, _, weight, stamp, place))
      i += 1
    }
  }
  private def send(route: Route, row: InternalRow, weight: Long, stamp: Long, place: Long): Unit =
    if (route.drops) route.valueOf(row) else sink(route.envelope(row, weight, stamp, place))
  /** An envelope that is not a row of the operator's answer: a dead letter. */
  def send(envelope: Array[Byte]): Unit = sink(envelope)
}
