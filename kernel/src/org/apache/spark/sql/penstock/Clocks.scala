package org.apache.spark.sql.penstock

import java.util.{HashMap => JavaMap, IdentityHashMap}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Max}
import org.apache.spark.sql.catalyst.plans.{FullOuter, LeftOuter, RightOuter}
import org.apache.spark.sql.catalyst.plans.logical._

/** What is known of a view that is read: the clocks of its columns, and whether its rows stay as they are once they are shown. */
final case class ViewClocks(columns: Map[String, Clock], stays: Boolean)

/** The clocks of values in a plan.
  *
  * @param streams the event time of each stream that has one, by the stream's name
  * @param views what is known of views that are read, by name
  */
final class Clocks(streams: Map[String, String], views: Map[String, ViewClocks]) {
  val bounds = new TimeBounds(this)
  /** What was found out already: a column may be asked for by everything above it. */
  private val known = new IdentityHashMap[LogicalPlan, JavaMap[ExprId, Option[Clock]]]()

  /** The clock of an expression over the output of `plan`. */
  def of(plan: LogicalPlan, e: Expression): Option[Clock] = of(e, column(plan, _))

  private def of(e: Expression, known: Attribute => Option[Clock]): Option[Clock] = TimeWindows.bare(e) match {
    case a: Attribute => known(a)
    case TimeWindows.LastMoment(window) => of(window, known).collect { case clock @ Clock(_, Shape.Window(_), _, _, _) => clock.copy(shape = Shape.Time) }
    case GetStructField(window, at, _) => of(window, known).flatMap(clock => (clock.shape, at) match {
      case (Shape.Window(_), 1) => Some(clock.copy(shape = Shape.End))
      case (Shape.Window(length), 0) if length >= 0 => Some(clock.copy(shape = Shape.Start(length)))
      case (Shape.Gap, 0) => Some(clock.copy(shape = Shape.Time))
      case _ => None
    })
    case AggregateExpression(Max(inside), _, _, _, _) => of(inside, known).filter(_.shape == Shape.End)
    case TimeWindows.Made(time, length) => timed(time, known, Shape.Window(length))
    case TimeWindows.Ending(time, _) => timed(time, known, Shape.End)
    case TimeWindows.Starting(time, distance) => timed(time, known, Shape.Start(distance))
    case TimeWindows.Gap(time) => timed(time, known, Shape.Gap).orElse(ending(e, known))
    case struct: CreateNamedStruct => ending(struct, known)
    case _ => None
  }

  private def timed(time: Expression, known: Attribute => Option[Clock], shape: Shape): Option[Clock] =
    of(time, known).filter(_.shape == Shape.Time).map(_.copy(shape = shape))

  /** A struct of a start, and an end that is known to be one. */
  private def ending(e: Expression, known: Attribute => Option[Clock]): Option[Clock] = TimeWindows.bare(e) match {
    case struct @ CreateNamedStruct(Seq(_, _, _, end)) if TimeWindows.isWindow(struct.dataType) =>
      of(end, known).filter(_.shape == Shape.End).map(_.copy(shape = Shape.Window(-1)))
    case _ => None
  }

  private def column(plan: LogicalPlan, column: Attribute): Option[Clock] = {
    val mine = known.computeIfAbsent(plan, _ => new JavaMap())
    if (!mine.containsKey(column.exprId)) mine.put(column.exprId, found(plan, column))
    mine.get(column.exprId)
  }

  private def found(plan: LogicalPlan, column: Attribute): Option[Clock] = plan match {
    case leaf: LeafNode => declared(Door.relation(leaf), column)
    case view: View => declared(view.desc.identifier.table, column)
    case Project(items, child) => items.find(_.exprId == column.exprId).flatMap {
      case same: Attribute => this.column(child, same)
      case item => of(child, item)
    }
    case expand: Expand => expanded(expand, column)
    case aggregate: Aggregate => bounds.of(aggregate).headOption.filter(_.clock.closes).flatMap { bound =>
      aggregate.aggregateExpressions.find(_.exprId == column.exprId).flatMap(item => of(item, grouped(aggregate, bound)(_)))
    }
    case session: Session => if (column.exprId == session.start.exprId) None else of(session.child, column)
    case union: Union =>
      val at = union.output.indexWhere(_.exprId == column.exprId)
      val found = union.children.map(child => of(child, child.output(at)))
      if (found.exists(_.isEmpty) || found.flatten.map(_.shape).distinct.size > 1) None else Some(found.flatten.reduce(_ and _))
    case join: Join if join.children.exists(_.outputSet.contains(column)) => joined(join, column)
    case retained: Retained =>
      val side = if (retained.join.left.outputSet.contains(column)) 0 else 1
      of(retained.join.children(side), column).map(retained.delayed(_, side))
    case join: AsOfJoin if join.left.outputSet.contains(column) => of(join.left, column).map(paired(join, column, _))
    case node: UnaryNode if column.references.subsetOf(node.child.outputSet) => of(node.child, column).flatMap(passed(node, column, _))
    case _ => None
  }

  private def declared(relation: String, column: Attribute): Option[Clock] =
    if (relation == null) None
    else if (streams.get(relation).exists(_.equalsIgnoreCase(column.name))) Some(Clock(Set(relation), Shape.Time, 0, complete = true, timely = false))
    else views.get(relation).flatMap(_.columns.get(column.name))

  private def expanded(expand: Expand, column: Attribute): Option[Clock] = {
    val at = expand.output.indexWhere(_.exprId == column.exprId)
    expand.projections.map(each => of(expand.child, each(at))).distinct match {
      // Windows overlap: their starts do not tell how long they are.
      case Seq(Some(Clock(_, Shape.Start(_), _, _, _))) if expand.projections.size > 1 => None
      case Seq(found) => found
      case _ => None
    }
  }

  /** What is known of a group: its window; of a session what its rows tell of it. */
  private def grouped(aggregate: Aggregate, bound: TimeBound)(column: Attribute): Option[Clock] = aggregate.child match {
    case session: Session => Option.when(column.exprId == session.window.exprId)(ended(bound.clock, Shape.Window(-1)))
    case _ if !bound.value.semanticEquals(column) => None
    case _ => Some(if (bound.clock.shape == Shape.Gap) ended(bound.clock, Shape.Window(-1)) else bound.clock)
  }

  /** A row whose time is a session's end still belongs to it. */
  private def ended(clock: Clock, shape: Shape): Clock = clock.copy(shape = shape, delay = clock.delay + 1)

  private def passed(node: UnaryNode, column: Attribute, clock: Clock): Option[Clock] = node match {
    case Filter(condition, _) => Some(clock.copy(timely = clock.timely || Lateness.isIn(condition)))
    case _: Sort | _: RepartitionOperation | _: Generate | _: ResolvedHint | _: SubqueryAlias | _: Held => Some(clock)
    case _: Distinct | _: Deduplicate | _: Window | _: WindowGroupLimit => bounds.of(node).headOption match {
      case Some(bound) if bound.clock.closes => Some(delayed(clock, column, bound, bound.clock.delay))
      case _ => Some(clock.copy(complete = false))
    }
    case _ => None
  }

  /** The clock of a column behind an operator, whose rows may change until what bounds it is over: that is the column itself, or some way from it. */
  private def delayed(clock: Clock, column: Attribute, bound: TimeBound, delay: Long): Clock =
    if (bound.value.semanticEquals(column)) clock.copy(delay = math.max(clock.delay, delay + bound.ahead))
    else if (!bound.keyed) clock.copy(delay = clock.delay + delay + bound.ahead)
    else bound.clock.length.fold(clock.copy(complete = false))(length => clock.copy(delay = clock.delay + delay + length))

  private def joined(join: Join, column: Attribute): Option[Clock] = {
    val fromLeft = join.left.outputSet.contains(column)
    // Without a partner the column is NULL: a window that never ends.
    val always = join.joinType match {
      case FullOuter => false
      case LeftOuter => fromLeft
      case RightOuter => !fromLeft
      case _ => true
    }
    val sides = bounds.of(join)
    of(if (fromLeft) join.left else join.right, column).map { found =>
      // Rows that the join still takes are not late above it, whether it closes or not.
      val met = found.copy(streams = sides.flatMap(_.clock.streams).toSet ++ found.streams)
      if (!always || sides.isEmpty || !sides.forall(_.clock.closes)) met.copy(complete = false)
      else delayed(met, column, sides.find(_.side == (if (fromLeft) 0 else 1)).get, sides.map(_.clock.delay).max)
    }
  }

  /** Until a row's time is over for the versions, one that comes changes what was found. */
  private def paired(join: AsOfJoin, column: Attribute, clock: Clock): Clock = AsOfClosing.of(join) match {
    case Some(closing) if AsOfTimes.of(join).exists(_.left.semanticEquals(column)) =>
      clock.copy(streams = clock.streams ++ closing.streams, delay = math.max(clock.delay, closing.reach))
    case _ => clock.copy(complete = false)
  }

  /** Whether every row is complete once the watermark has passed the time that it belongs to. */
  def isComplete(plan: LogicalPlan): Boolean = plan match {
    case _: Project | _: Filter | _: Sort | _: RepartitionOperation | _: Generate | _: ResolvedHint | _: SubqueryAlias => isComplete(plan.children.head)
    case union: Union => union.children.forall(isComplete)
    case _: Held => true
    // A row of a stream stays as it is.
    case leaf: LeafNode => Option(Door.relation(leaf)).exists(name => streams.contains(name) || views.get(name).exists(_.stays))
    case view: View => views.get(view.desc.identifier.table).exists(_.stays)
    case _: Aggregate | _: Distinct | _: Deduplicate => closes(plan)
    // What the key has is held above: see `Finishing`.
    case _: Window => closes(plan) && !bounds.of(plan).exists(_.keyed)
    // Pairs are shown at once.
    case join: Join => closes(plan) && !bounds.of(plan).exists(_.keyed) && isComplete(join.left) && isComplete(join.right)
    case _ => false
  }

  private def closes(plan: LogicalPlan): Boolean = bounds.of(plan).nonEmpty && bounds.of(plan).forall(_.clock.closes)

  /** Whether the rows of a plan stay as they are from when they come. */
  def stays(plan: LogicalPlan): Boolean = isComplete(plan) && !plan.exists {
    case _: Project | _: Filter | _: Generate | _: Union | _: LeafNode | _: ResolvedHint | _: SubqueryAlias | _: View => false
    case _ => true
  }
}
