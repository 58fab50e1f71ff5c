package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.{FullOuter, LeftOuter, RightOuter}
import org.apache.spark.sql.catalyst.plans.logical._

/** What tells when the rows of a window are complete: the watermark of a stream.
  *
  * @param complete whether nothing else changes a window once the watermark has passed its end; over a join with a table something may
  * @param timely whether rows that are late are left out beneath: see [[Lateness]]
  */
final case class Clock(stream: String, complete: Boolean, timely: Boolean) {
  def closes: Boolean = complete && timely
}

/** The clocks of columns in a plan that Catalyst has optimized.
  *
  * @param streams the event time of each stream that has one, by the stream's name
  */
final class Clocks(streams: Map[String, String]) {

  /** The stream whose watermark closes the windows of an aggregate, and where they stand among what it groups by. */
  def of(aggregate: Aggregate): Option[(String, Int)] = aggregate.groupingExpressions.zipWithIndex.flatMap {
    case (window: Attribute, at) if TimeWindows.isWindow(window.dataType) => of(aggregate.child, window).filter(_.closes).map(c => (c.stream, at))
    case _ => None
  }.headOption

  /** Whether every row is complete once the watermark has passed the window that it belongs to. */
  def isComplete(plan: LogicalPlan): Boolean = plan match {
    case _: Project | _: Filter | _: Sort | _: RepartitionOperation | _: Generate => isComplete(plan.children.head)
    case aggregate: Aggregate => of(aggregate).isDefined
    case window: Window => isComplete(window.child) && hasClock(window.child, window.partitionSpec)
    case limit: WindowGroupLimit => isComplete(limit.child) && hasClock(limit.child, limit.partitionSpec)
    case join: Join => isComplete(join.left) && isComplete(join.right) && meets(join)
    case union: Union => union.children.forall(isComplete)
    case _ => false
  }

  private def hasClock(plan: LogicalPlan, columns: Seq[Expression]): Boolean =
    columns.exists { case a: Attribute => of(plan, a).exists(_.closes); case _ => false }

  /** Whether both sides are joined on their windows, and those close together. */
  private def meets(join: Join): Boolean = join match {
    case ExtractEquiJoinKeys(_, lefts, rights, _, _, left, right, _) => lefts.zip(rights).exists {
      case (a: Attribute, b: Attribute) =>
        val clocks = Seq(of(left, a), of(right, b)).flatten
        clocks.size == 2 && clocks.forall(_.closes) && clocks.head.stream == clocks.last.stream
      case _ => false
    }
    case _ => false
  }

  private def of(plan: LogicalPlan, column: Attribute): Option[Clock] = plan match {
    case leaf: LeafNode => Option(Door.relation(leaf)).filter(streams.get(_).exists(_.equalsIgnoreCase(column.name))).map(Clock(_, complete = true, timely = false))
    case Project(items, child) => items.find(_.exprId == column.exprId).flatMap(source).flatMap(of(child, _))
    case expand: Expand =>
      val at = expand.output.indexWhere(_.exprId == column.exprId)
      expand.projections.map(_(at)).map { case a: Attribute => Some(a); case e => TimeWindows.source(e) }.distinct match {
        case Seq(Some(found)) => of(expand.child, found)
        case _ => None
      }
    case aggregate: Aggregate => of(aggregate).flatMap { case (stream, at) =>
      val window = aggregate.groupingExpressions(at).asInstanceOf[Attribute]
      val found = aggregate.aggregateExpressions.find(_.exprId == column.exprId).flatMap(source)
      found.filter(_.exprId == window.exprId).map(_ => Clock(stream, complete = true, timely = true))
    }
    case union: Union =>
      val at = union.output.indexWhere(_.exprId == column.exprId)
      val found = union.children.map(child => of(child, child.output(at)))
      if (found.distinct.size == 1) found.head else None
    case join: Join =>
      val fromLeft = join.left.outputSet.contains(column)
      // Without a partner the column is NULL, a window that never ends.
      val always = join.joinType match {
        case FullOuter => false
        case LeftOuter => fromLeft
        case RightOuter => !fromLeft
        case _ => true
      }
      of(if (fromLeft) join.left else join.right, column).map(found => if (always && meets(join)) found else found.copy(complete = false))
    case window: Window =>
      of(window.child, column).map(found => if (hasClock(window.child, window.partitionSpec)) found else found.copy(complete = false))
    case Filter(condition, child) => of(child, column).map(found => found.copy(timely = found.timely || Lateness.isIn(condition)))
    case _: Sort | _: RepartitionOperation | _: Generate | _: WindowGroupLimit =>
      plan.children.find(_.outputSet.contains(column)).flatMap(of(_, column)).map { found =>
        plan match {
          case limit: WindowGroupLimit if !hasClock(limit.child, limit.partitionSpec) => found.copy(complete = false)
          case _ => found
        }
      }
    case _ => None
  }

  private def source(item: NamedExpression): Option[Attribute] = item match {
    case a: Attribute => Some(a)
    case Alias(a: Attribute, _) => Some(a)
    case other => TimeWindows.source(other)
  }
}
