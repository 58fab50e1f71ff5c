package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical._

/** Where a query leaves it to Spark which of several rows comes first, all columns decide, in order.
  *
  * Rows that tie in ORDER BY are put in order by the remaining columns where that makes a difference: under LIMIT, for functions that count or pick
  * rows of a window, for frames of ROWS, and for the nearest row of an as-of join. So the answer is one of those that Spark may give, always the same one; the batch engine gives it
  * too, if asked for this plan.
  */
object Ties {
  def broken(analyzed: LogicalPlan): LogicalPlan = analyzed.transformUpWithSubqueries {
    case window: Window if window.windowExpressions.exists(depends) => apart(window)
    case limit @ GlobalLimit(_, _) => limit.withNewChildren(Seq(sorted(limit.child)))
    case join: AsOfJoin => AsOfTimes.tied(join, rest(join.rightSortExprs.map(SortOrder(_, Ascending)), join.right.output).map(_.child))
    case offset @ Offset(_, child) if !child.isInstanceOf[GlobalLimit] => offset.withNewChildren(Seq(sorted(child)))
  }

  /** The rows beneath a LIMIT or an OFFSET in an order that leaves nothing open. */
  private def sorted(plan: LogicalPlan): LogicalPlan = plan match {
    case LocalLimit(n, child) => LocalLimit(n, sorted(child))
    case Offset(n, child) => Offset(n, sorted(child))
    case limit: GlobalLimit => limit
    case Sort(order, true, child, hint) => Sort(order ++ rest(order, child.output), global = true, child, hint)
    case Project(items, Sort(order, true, child, hint)) => Project(items, Sort(order ++ rest(order, child.output), global = true, child, hint))
    case other => Sort(rest(Nil, other.output), global = true, other)
  }

  /** Functions that need it get a window of their own, for others an order that leaves ties is part of what they mean. */
  private def apart(window: Window): LogicalPlan = {
    val (needing, others) = window.windowExpressions.partition(depends)
    val below = if (others.isEmpty) window.child else window.copy(windowExpressions = others)
    val order = window.orderSpec ++ rest(window.orderSpec, window.child.output)
    val respecified = needing.map(_.transform { case w: WindowExpression => w.copy(windowSpec = w.windowSpec.copy(orderSpec = order)) }.asInstanceOf[NamedExpression])
    val above = Window(respecified, window.partitionSpec, order, below)
    if (others.isEmpty) above else Project(window.output, above)
  }

  private def depends(e: NamedExpression): Boolean = e.exists {
    case WindowExpression(_: Rank | _: DenseRank | _: PercentRank | _: CumeDist, _) => false
    case WindowExpression(_: AggregateExpression, WindowSpecDefinition(_, _, frame: SpecifiedWindowFrame)) =>
      frame.frameType == RowFrame && !(frame.lower == UnboundedPreceding && frame.upper == UnboundedFollowing)
    case _: WindowExpression => true
    case _ => false
  }

  private def rest(order: Seq[SortOrder], columns: Seq[Attribute]): Seq[SortOrder] = {
    val named = order.map(_.child)
    columns.filter(c => RowOrdering.isOrderable(c.dataType) && !named.exists(_.semanticEquals(c))).map(SortOrder(_, Ascending))
  }
}
