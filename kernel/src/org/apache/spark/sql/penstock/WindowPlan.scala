package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, AggregateFunction}
import org.apache.spark.sql.catalyst.plans.logical.{Window => LogicalWindow}
import org.apache.spark.sql.types._
import penstock.kernel.engine._
import scala.collection.mutable.{ArrayBuffer, LinkedHashMap => OrderedMap}

/** Window functions taken apart: the partition's key, the order of its rows, what is gathered over which frames, and how the values
  * are made of that. The operator's input row is the child's output, its output row the node's.
  */
final class WindowPlan(node: LogicalWindow, timeZone: String) {
  private val input = AttributeSeq(node.child.output)

  /** The key's expressions, over the input; equal partitions have equal bytes. */
  val keys: Seq[Expression] = node.partitionSpec.map(AggregatePlan.keyed(_, "PARTITION BY"))
  val keyWidth: Int = keys.length
  /** The input row is the child's output, the output row the node's. */
  val inputs: Seq[Expression] = node.child.output
  val output: Seq[Attribute] = node.output

  def operator(id: Int, edges: Seq[Edge], closing: Option[Closing]): Operator = {
    val ages = closing.flatMap(_.ages(0, expression => node.child.output.indexWhere(_.semanticEquals(expression))))
    Window(id, keyWidth, order, frames, values, edges, closing.flatMap(_.timing), closing.flatMap(_.dating), ages)
  }
  val order: RowOrder = WindowPlan.order(node.orderSpec, node.child.output)

  private val groups = OrderedMap.empty[FrameKey, ArrayBuffer[Planned]]
  private val results: Seq[Expression] = node.windowExpressions.map(each => AggregatePlan.plain(each).transform {
    case w: WindowExpression => value(w)
  })

  val frames: Seq[Framed] = groups.toSeq.map { case (key, planned) => framed(key, planned.toSeq) }

  /** One value for each of the node's window expressions, bound to the input's columns followed by those of the frames. */
  val values: Seq[Expression] = {
    val row = AttributeSeq(node.child.output ++ groups.values.flatten.flatMap(_.fold.columns))
    results.map(BindReferences.bindReference(_, row))
  }

  /** Functions share a frame if all of them can be merged, or none, and if what they gather grows, or does not. */
  private case class FrameKey(lower: Bound, upper: Bound, merges: Boolean, grows: Boolean)
  private case class Planned(fold: FrameFold, filter: Option[Expression])

  private def framed(key: FrameKey, planned: Seq[Planned]): Framed = {
    var at = 0
    val folds = planned.map { each =>
      val begin = at
      at += each.fold.inputs.length + each.filter.size
      Folded(each.fold.fold(begin), begin, if (each.filter.isDefined) at - 1 else -1, each.fold.columns.length)
    }
    val arguments = planned.flatMap(each => each.fold.inputs ++ each.filter).map(BindReferences.bindReference(_, input))
    Framed(key.lower, key.upper, arguments, Gathering(folds, arguments.length), planned.flatMap(_.fold.columns.map(_.dataType)))
  }

  private def value(w: WindowExpression): Expression = w.windowFunction match {
    case e: AggregateExpression if e.isDistinct => throw new Unsupported(e.sql, "DISTINCT is not kept over windows")
    case e: AggregateExpression => over(w, e.aggregateFunction, e.filter)
    case f: FrameLessOffsetWindowFunction => shifted(f)
    case _: RowNumber => Numbering.whole(rowNumber)
    case _: Rank => Numbering.whole(Numbering.plusOne(before))
    case _: DenseRank => Numbering.whole(groupNumber)
    case _: PercentRank => Numbering.percentRank(before, size)
    case _: CumeDist => Numbering.ratio(counted(Bound.Unbounded, Bound.Peers), size)
    case f: NTile => Numbering.whole(Numbering.tile(rowNumber, size, f.buckets.eval().asInstanceOf[Int]))
    case f: AggregateFunction => over(w, f, None)
    // The optimizer may have found the value already.
    case other if other.deterministic && !other.exists(_.isInstanceOf[WindowFunction]) => other
    case other => throw new Unsupported(other.sql, "this window function is not supported")
  }

  private def over(w: WindowExpression, f: AggregateFunction, filter: Option[Expression]): Expression = {
    val (lower, upper) = bounds(w)
    added(lower, upper, FrameFold.of(f), filter)
  }

  private def added(lower: Bound, upper: Bound, fold: FrameFold, filter: Option[Expression] = None): Expression = {
    val made = fold.fold(0)
    groups.getOrElseUpdate(FrameKey(lower, upper, made.merges, made.grows), ArrayBuffer.empty) += Planned(fold, filter)
    fold.value
  }

  private def counted(lower: Bound, upper: Bound): Expression = added(lower, upper, FrameFold.counted())
  private def rowNumber: Expression = counted(Bound.Unbounded, Bound.Rows(0))
  private def before: Expression = counted(Bound.Unbounded, Bound.BeforePeers)
  private lazy val size: Expression = counted(Bound.Unbounded, Bound.Unbounded)
  private def groupNumber: Expression = {
    val by = node.orderSpec.map(_.child)
    added(Bound.Unbounded, Bound.Peers, FrameFold.counted(by, GroupsFold(by.map(_.dataType))))
  }

  /** `lag` and `lead`: the value so many rows away, or so many values that are not NULL; the default where there is none. */
  private def shifted(f: FrameLessOffsetWindowFunction): Expression = {
    val offset = f.offset.eval().asInstanceOf[Int]
    val skips = f.ignoreNulls && offset != 0
    val (fold, found) = FrameFold.picked(f.input, if (skips) math.abs(offset) else 1, fromLast = skips && offset < 0, ignoreNulls = skips)
    val value =
      if (!skips) added(Bound.Rows(offset), Bound.Rows(offset), fold)
      else if (offset < 0) added(Bound.Unbounded, Bound.Rows(-1), fold)
      else added(Bound.Rows(1), Bound.Unbounded, fold)
    val default = if (f.default == null || f.default.dataType == NullType) Literal.create(null, f.dataType) else f.default
    If(found, value, default)
  }

  private def bounds(w: WindowExpression): (Bound, Bound) = w.windowSpec.frameSpecification match {
    case SpecifiedWindowFrame(kind, lower, upper) => (bound(w, kind, lower), bound(w, kind, upper))
    case other => throw new Unsupported(w.sql, s"its frame is $other")
  }

  private def bound(w: WindowExpression, kind: FrameType, offset: Expression): Bound = (kind, offset) match {
    case (_, UnboundedPreceding | UnboundedFollowing) => Bound.Unbounded
    case (RowFrame, CurrentRow) => Bound.Rows(0)
    case (RangeFrame, CurrentRow) => Bound.Peers
    case (RowFrame, rows) => Bound.Rows(rows.eval().asInstanceOf[Number].longValue)
    case (RangeFrame, _) if node.orderSpec.length != 1 => throw new Unsupported(w.sql, "a RANGE frame with an offset needs exactly one order")
    case (RangeFrame, _) =>
      val sign = WindowPlan.sign(offset)
      if (sign == 0) Bound.Peers
      else Bound.Value(BindReferences.bindReference(WindowPlan.moved(w, node.orderSpec.head, offset, timeZone), input), following = sign > 0)
  }
}

object WindowPlan {
  /** The orders of a window or a limit, and of peers; where they leave it open, the columns decide, from the first to the last. */
  def order(orders: Seq[SortOrder], input: Seq[Attribute]): RowOrder = {
    val known = PeerOrder.plain(orders) ++ PeerOrder.of(orders)
    val others = input.filter(a => RowOrdering.isOrderable(a.dataType) && !known.exists(_.child.semanticEquals(a)))
    val all = known ++ others.map(SortOrder(_, Ascending))
    RowOrder(input.length, all.map(BindReferences.bindReference(_, AttributeSeq(input))), orders.length)
  }

  private def sign(offset: Expression): Int = offset.eval() match {
    case interval: org.apache.spark.unsafe.types.CalendarInterval =>
      Seq(interval.months.toLong, interval.days.toLong, interval.microseconds).map(java.lang.Long.signum).find(_ != 0).getOrElse(0)
    case decimal: Decimal => decimal.toJavaBigDecimal.signum
    case number: Number => math.signum(number.doubleValue).toInt
  }

  /** The order value, `offset` further on in the order. */
  private def moved(w: WindowExpression, order: SortOrder, offset: Expression, timeZone: String): Expression = {
    val by = if (order.direction == Descending) UnaryMinus(offset, failOnError = false) else offset
    (order.child.dataType, by.dataType) match {
      case (DateType, IntegerType) => DateAdd(order.child, by)
      case (DateType, _: YearMonthIntervalType) => DateAddYMInterval(order.child, by)
      case (DateType, DayTimeIntervalType(DayTimeIntervalType.DAY, DayTimeIntervalType.DAY)) => DateAdd(order.child, ExtractANSIIntervalDays(by))
      case (TimestampType | TimestampNTZType, CalendarIntervalType | _: DayTimeIntervalType) => TimestampAddInterval(order.child, by, Some(timeZone))
      case (TimestampType | TimestampNTZType, _: YearMonthIntervalType) => TimestampAddYMInterval(order.child, by, Some(timeZone))
      case (decimal: DecimalType, _: DecimalType) => DecimalAddNoOverflowCheck(order.child, by, decimal)
      case (a, b) if a == b => Add(order.child, by, Numbering.Wrapping)
      case (a, b) => throw new Unsupported(w.sql, s"a RANGE frame over ${a.sql} with an offset of ${b.sql} is not supported")
    }
  }
}
