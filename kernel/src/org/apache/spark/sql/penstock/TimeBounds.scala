package org.apache.spark.sql.penstock

import java.util.IdentityHashMap
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.DateTimeConstants.MICROS_PER_DAY
import org.apache.spark.sql.types.{CalendarIntervalType, DayTimeIntervalType, LongType}
import org.apache.spark.unsafe.types.CalendarInterval

/** A bound in time of one input of an operator: rows whose `value` is over are not needed any more.
  *
  * @param side which input
  * @param value over the input
  * @param keyed whether it is what rows are grouped, parted or joined by
  * @param ahead so many microseconds after a row's time the rows come that still change what is made of it
  * @param behind so many microseconds after its time a row is still looked at for others
  */
final case class TimeBound(side: Int, value: Expression, clock: Clock, keyed: Boolean, ahead: Long = 0, behind: Long = 0)

/** Which operators have bounds in time: groups, partitions and joins of windows, sessions, joins within a range of time, frames that are a range of
  * time.
  */
final class TimeBounds(clocks: Clocks) {
  private val known = new IdentityHashMap[LogicalPlan, Seq[TimeBound]]()

  def of(node: LogicalPlan): Seq[TimeBound] = {
    if (!known.containsKey(node)) known.put(node, found(node))
    known.get(node)
  }

  private def found(node: LogicalPlan): Seq[TimeBound] = node match {
    case Aggregate(groups, _, session: Session, _) if groups.exists(_.semanticEquals(session.start)) => of(session).map(_.copy(value = session.start))
    case aggregate: Aggregate => keyed(aggregate.child, aggregate.groupingExpressions, sessions = true)
    case distinct: Distinct => keyed(distinct.child, distinct.child.output)
    case distinct: Deduplicate => keyed(distinct.child, distinct.keys)
    case limit: WindowGroupLimit => keyed(limit.child, limit.partitionSpec)
    case window: Window => first(keyed(window.child, window.partitionSpec), ranged(window))
    case session: Session => clocks.of(session.child, session.window).filter(_.shape == Shape.Gap).map(TimeBound(0, session.window, _, keyed = false)).toSeq
    case join: Join => first(onWindows(join), within(join))
    case _ => Nil
  }

  private def first(one: Seq[TimeBound], other: => Seq[TimeBound]): Seq[TimeBound] = if (one.nonEmpty) one else other

  /** The window among keys; an end tells more than a start. */
  private def keyed(child: LogicalPlan, keys: Seq[Expression], sessions: Boolean = false): Seq[TimeBound] = {
    val found = keys.flatMap(key => clocks.of(child, key).map(TimeBound(0, key, _, keyed = true))).filter { bound =>
      bound.clock.isWindow || (sessions && bound.clock.shape == Shape.Gap && isSession(bound.value))
    }
    found.sortBy(_.clock.shape match { case Shape.Start(_) => 1; case _ => 0 }).take(1)
  }

  private def isSession(value: Expression): Boolean = value match {
    case a: Attribute => a.metadata.contains(SessionWindow.marker)
    case _ => false
  }

  /** Both sides are joined on their windows, or their times. */
  private def onWindows(join: Join): Seq[TimeBound] = join match {
    case ExtractEquiJoinKeys(_, lefts, rights, _, _, left, right, _) =>
      val found = for ((a, b) <- lefts.zip(rights); one <- clocks.of(left, a); other <- clocks.of(right, b) if one.shape == other.shape && one.shape != Shape.Gap)
        yield Seq(TimeBound(0, a, one, keyed = true), TimeBound(1, b, other, keyed = true))
      together(found.sortBy(_.head.clock.shape match { case Shape.Start(_) => 1; case Shape.Time => 2; case _ => 0 }).headOption.getOrElse(Nil))
    case _ => Nil
  }

  /** The streams of both sides tell when an operator's state can go. */
  private def together(bounds: Seq[TimeBound]): Seq[TimeBound] = {
    val streams = bounds.flatMap(_.clock.streams).toSet
    val delay = bounds.map(_.clock.delay).maxOption.getOrElse(0L)
    bounds.map(bound => bound.copy(clock = bound.clock.copy(streams = streams, delay = delay)))
  }

  /** The times of both sides are no further apart than constants say. */
  private def within(join: Join): Seq[TimeBound] = {
    val found = for (comparison <- join.condition.toSeq.flatMap(JoinPlan.conjuncts); (lesser, greater, strict) <- TimeBounds.ordered(comparison); distance <- distance(join, lesser, greater))
      yield distance.copy(most = distance.most - (if (strict) 1 else 0))
    val pairs = found.groupBy(each => (each.left.exprId, each.right.exprId)).values.toSeq.map { same =>
      (same.head, same.filter(_.rightLater).map(_.most).minOption, same.filterNot(_.rightLater).map(_.most).minOption)
    }.collect { case (each, Some(rightAfter), Some(leftAfter)) => (each, rightAfter, leftAfter) }
    pairs.sortBy(_._1.left.exprId.id).headOption.toSeq.flatMap { case (each, rightAfter, leftAfter) =>
      val (one, other) = (clocks.of(join.left, each.left).get, clocks.of(join.right, each.right).get)
      together(Seq(
        TimeBound(0, each.left, one, keyed = false, ahead = math.max(rightAfter, 0) + other.delay, behind = rightAfter + other.delay),
        TimeBound(1, each.right, other, keyed = false, ahead = math.max(leftAfter, 0) + one.delay, behind = leftAfter + one.delay)))
    }
  }

  /** One time is at most so much later than the other: that of the right side, or that of the left. */
  private case class Apart(left: Attribute, right: Attribute, rightLater: Boolean, most: Long)

  /** lesser + a <= greater + b  =>  lesser - greater <= b - a */
  private def distance(join: Join, lesser: Expression, greater: Expression): Option[Apart] = {
    val (low, a) = Distance.parted(lesser)
    val (high, b) = Distance.parted(greater)
    (low, high) match {
      case (l: Attribute, r: Attribute) if isTime(join.left, l) && isTime(join.right, r) => Some(Apart(l, r, rightLater = false, b - a))
      case (r: Attribute, l: Attribute) if isTime(join.left, l) && isTime(join.right, r) => Some(Apart(l, r, rightLater = true, b - a))
      case _ => None
    }
  }

  private def isTime(side: LogicalPlan, column: Attribute): Boolean =
    side.outputSet.contains(column) && clocks.of(side, column).exists(_.shape == Shape.Time)

  /** Every frame is a range about the row's time. */
  private def ranged(window: Window): Seq[TimeBound] = window.orderSpec match {
    case Seq(order) if order.direction == Ascending =>
      val reaches = window.windowExpressions.flatMap(_.collect { case e: WindowExpression => TimeBounds.reach(e) })
      clocks.of(window.child, order.child).filter(_.shape == Shape.Time).filter(_ => reaches.nonEmpty && reaches.forall(_.isDefined)).map { clock =>
        val (behind, ahead) = (reaches.flatten.map(_._1).max, reaches.flatten.map(_._2).max)
        TimeBound(0, order.child, clock, keyed = false, ahead, behind + ahead)
      }.toSeq
    case _ => Nil
  }
}

object TimeBounds {
  def later(time: Expression, by: Long): Expression = if (by == 0) time else Add(time, Literal(by, LongType))

  /** What a comparison says is less, what it says is more, and whether they cannot be equal. */
  def ordered(comparison: Expression): Option[(Expression, Expression, Boolean)] = comparison match {
    case LessThan(a, b) => Some((a, b, true))
    case LessThanOrEqual(a, b) => Some((a, b, false))
    case GreaterThan(a, b) => Some((b, a, true))
    case GreaterThanOrEqual(a, b) => Some((b, a, false))
    case _ => None
  }

  /** How far a frame reaches back and ahead, in microseconds, if it is a range of time. */
  private def reach(e: WindowExpression): Option[(Long, Long)] = (e.windowFunction, e.windowSpec.frameSpecification) match {
    case (_: aggregate.AggregateExpression, SpecifiedWindowFrame(RangeFrame, lower, upper)) =>
      for (from <- micros(lower); until <- micros(upper)) yield (math.max(-from, 0L), math.max(until, 0L))
    case _ => None
  }

  /** Where clocks are changed, a day is up to some hours longer: of days one more is taken. */
  private def micros(bound: Expression): Option[Long] = bound match {
    case CurrentRow => Some(0L)
    case UnboundedPreceding | UnboundedFollowing => None
    case _ if !bound.foldable => None
    case _ => (bound.eval(), bound.dataType) match {
      case (interval: CalendarInterval, CalendarIntervalType) if interval.months == 0 && interval.days == 0 => Some(interval.microseconds)
      case (micros: Long, _: DayTimeIntervalType) => Some(micros + (if (math.abs(micros) >= MICROS_PER_DAY) math.signum(micros) * MICROS_PER_DAY else 0))
      case _ => None
    }
  }
}
