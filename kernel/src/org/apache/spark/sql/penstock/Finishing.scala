package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Complete, Max}
import org.apache.spark.sql.catalyst.plans.{ExistenceJoin, FullOuter, JoinType, LeftAnti, LeftOuter, RightOuter}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.LongType

/** A query that shows rows only once they are complete.
  *
  * For the engine, rows of operators that do not wait by themselves are held. For Spark's batch engine, `complete` says how far the watermark of
  * each stream has come, and what is not over by then is left out.
  */
final class Finishing(clocks: Clocks, complete: Option[Map[String, Long]]) {
  def of(plan: LogicalPlan): LogicalPlan = plan match {
    case _: Project | _: Filter | _: Sort | _: RepartitionOperation | _: Generate | _: ResolvedHint | _: Union => plan.mapChildren(of)
    case _ => complete.fold(held(plan))(over(plan, _))
  }

  private def held(plan: LogicalPlan): LogicalPlan = (plan, clocks.bounds.of(plan)) match {
    case (join: AsOfJoin, _) => asOf(join).fold(plan) { case (over, streams) => Held(over, streams, join) }
    case (window: Window, Seq(bound)) if bound.keyed => Held(bound.clock.over(bound.value), bound.clock.streams.toSeq.sorted, window)
    case (join: Join, Seq(left, right)) if left.keyed =>
      Held(of(join.joinType, left, right), left.clock.streams.toSeq.sorted, join)
    // Pairs are shown at once: what they are made of must be complete.
    case (join: Join, Seq(_, _)) => join.mapChildren(of)
    case _ => plan
  }

  private def over(plan: LogicalPlan, times: Map[String, Long]): LogicalPlan = {
    def isOver(time: Expression, bound: TimeBound): Expression = passed(time, bound.clock.streams.toSeq.sorted)
    def passed(time: Expression, streams: Seq[String]): Expression =
      streams.map(stream => LessThanOrEqual(time, Literal(times(stream), LongType)): Expression).reduce(And(_, _))
    (plan, clocks.bounds.of(plan)) match {
      case (join: AsOfJoin, _) => asOf(join).fold(plan) { case (over, streams) => Filter(passed(over, streams), join) }
      case (aggregate: Aggregate, Seq(bound)) if bound.clock.shape == Shape.Gap =>
        // The end of the last row, not of the session itself: Catalyst would look at that before sessions are merged.
        val end = Alias(AggregateExpression(Max(GetStructField(bound.value, 1)), Complete, isDistinct = false), "end")()
        val whole = aggregate.copy(aggregateExpressions = aggregate.aggregateExpressions :+ end)
        val over = Add(TimeWindows.micros(end.toAttribute), Literal(1 + bound.clock.delay, LongType))
        Project(aggregate.output, Filter(isOver(over, bound), whole))
      case (_: Aggregate | _: Distinct | _: Deduplicate, Seq(bound)) =>
        plan.withNewChildren(Seq(Filter(isOver(bound.clock.over(bound.value), bound), plan.children.head)))
      case (_: Window, Seq(bound)) => Filter(isOver(TimeBounds.later(bound.clock.over(bound.value), bound.ahead), bound), plan)
      case (join: Join, Seq(left, right)) if left.keyed => Filter(isOver(of(join.joinType, left, right), left), join)
      case (join: Join, Seq(left, right)) =>
        def certain(bound: TimeBound): Expression = {
          val passed = Coalesce(Seq(isOver(TimeBounds.later(TimeWindows.micros(bound.value), bound.behind + 1), bound), Literal(true)))
          // A row whose key is NULL has no partner from the start.
          (passed +: Finishing.keys(join, bound.side).filter(_.nullable).map(IsNull(_): Expression)).reduce(Or(_, _))
        }
        alone(join.copy(left = of(join.left), right = of(join.right)), certain, left, right)
      case _ => plan
    }
  }

  /** When the rows of an as-of join are complete, and by which streams' watermarks: a version that comes when their time is over does not count for
    * them. Only for rows that stay as they are, looking into versions that do.
    */
  private def asOf(join: AsOfJoin): Option[(Expression, Seq[String])] = for {
    times <- AsOfTimes.of(join) if Seq(join.left, join.right).forall(side => clocks.isComplete(side) && !side.exists(Finishing.asks))
    closing <- AsOfClosing.of(join)
  } yield (Finishing.always(TimeBounds.later(TimeWindows.micros(times.left), closing.reach + 1)), closing.streams.toSeq)

  /** When a pair is over, or a row without a partner. */
  private def of(kind: JoinType, left: TimeBound, right: TimeBound): Expression = kind match {
    case FullOuter | RightOuter => Finishing.always(right.clock.over(right.value), left.clock.over(left.value))
    case _ => Finishing.always(left.clock.over(left.value))
  }

  /** Pairs, and the rows without a partner that are over. */
  private def alone(join: Join, isOver: TimeBound => Expression, left: TimeBound, right: TimeBound): LogicalPlan = {
    def marked(side: LogicalPlan): (Project, Attribute) = {
      val met = Alias(Literal(true), "met")()
      (Project(side.output :+ met, side), met.toAttribute)
    }
    val (lefts, metLeft) = marked(join.left)
    val (rights, metRight) = marked(join.right)
    join.joinType match {
      case LeftAnti => Filter(isOver(left), join)
      case ExistenceJoin(exists) => Filter(Or(exists, isOver(left)), join)
      case LeftOuter => Project(join.output, Filter(Or(IsNotNull(metRight), isOver(left)), join.copy(right = rights)))
      case RightOuter => Project(join.output, Filter(Or(IsNotNull(metLeft), isOver(right)), join.copy(left = lefts)))
      case FullOuter =>
        val lone = If(IsNull(metRight), isOver(left), If(IsNull(metLeft), isOver(right), Literal(true)))
        Project(join.output, Filter(lone, join.copy(left = lefts, right = rights)))
      case _ => join
    }
  }
}

object Finishing {
  /** The first of these times that there is; a row without any has no partner, and is complete from the start. */
  private def always(times: Expression*): Expression = Coalesce(times :+ Literal(Long.MinValue, LongType))

  /** Whether a query stands in an expression. */
  private def asks(node: LogicalPlan): Boolean = node.expressions.exists(_.exists(_.isInstanceOf[PlanExpression[_]]))

  private def keys(join: Join, side: Int): Seq[Expression] = join match {
    case ExtractEquiJoinKeys(_, lefts, rights, _, _, _, _, _) => if (side == 0) lefts else rights
    case _ => Nil
  }
}
