package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, AggregateFunction, Complete, Max, Min}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan, Project, UnaryNode}
import org.apache.spark.sql.types.StructType

/** Every row with the start of the session that it belongs to.
  *
  * @param keys rows that are equal in them may be of one session
  * @param window the session as it is for one row: from its time to the end of its gap
  */
case class Session(keys: Seq[Expression], window: Attribute, start: Attribute, child: LogicalPlan) extends UnaryNode {
  override def output: Seq[Attribute] = child.output :+ start
  override def producedAttributes: AttributeSet = AttributeSet(start)
  override protected def withNewChildInternal(newChild: LogicalPlan): Session = copy(child = newChild)
}

object Session {
  /** Whether an item of groups by sessions is their end. */
  def isEnd(aggregate: Aggregate, item: NamedExpression): Boolean = aggregate.child.isInstanceOf[Session] && (item match {
    case Alias(AggregateExpression(Max(GetStructField(window: Attribute, 1, _)), _, _, _, _), _) => window.metadata.contains(SessionWindow.marker)
    case _ => false
  })

  /** In Catalyst's tree every row still has a session of its own; Spark merges them when it runs the plan. */
  def of(aggregate: Aggregate): Option[Attribute] =
    aggregate.groupingExpressions.collectFirst { case a: Attribute if a.metadata.contains(SessionWindow.marker) => a }

  /** The plan with sessions as what their rows amount to, not as what is grouped by: Catalyst would move conditions on that beneath the groups, where
    * sessions are not merged yet.
    */
  def shielded(plan: LogicalPlan): LogicalPlan = plan.transformUpWithNewOutput {
    case aggregate: Aggregate if of(aggregate).exists(window => aggregate.aggregateExpressions.exists(isShown(_, window))) =>
      val items = told(aggregate, of(aggregate).get)
      aggregate.copy(aggregateExpressions = items) -> aggregate.output.zip(items.map(_.toAttribute)).filter { case (old, now) => old.exprId != now.exprId }
  }

  /** What is made of the groups, with the session as what its rows amount to. */
  private def told(aggregate: Aggregate, window: Attribute): Seq[NamedExpression] = {
    val whole = CreateNamedStruct(Seq(Literal("start"), gathered(Min(GetStructField(window, 0))), Literal("end"), gathered(Max(GetStructField(window, 1)))))
    aggregate.aggregateExpressions.map {
      case a: Attribute if a.exprId == window.exprId => Alias(whole, a.name)()
      case Alias(e, name) if isShown(e, window) => Alias(outside(e, window, whole), name)()
      case other => other
    }
  }

  private def gathered(f: AggregateFunction): Expression = AggregateExpression(f, Complete, isDistinct = false)

  /** Whether the session stands in an expression, outside of the functions that gather rows. */
  private def isShown(e: Expression, window: Attribute): Boolean = e match {
    case _: AggregateExpression => false
    case a: Attribute => a.exprId == window.exprId
    case other => other.children.exists(isShown(_, window))
  }

  private def outside(e: Expression, window: Attribute, whole: Expression): Expression = e match {
    case f: AggregateExpression => f
    case a: Attribute => if (a.exprId == window.exprId) whole else a
    case other => other.mapChildren(outside(_, window, whole))
  }

  /** Groups by sessions as groups by their starts, which sessions keep as they grow. */
  def grouped(node: Aggregate): LogicalPlan = of(node).fold[LogicalPlan](node) { window =>
    val others = node.groupingExpressions.filterNot(_.semanticEquals(window))
    val start = AttributeReference("session_start", window.dataType.asInstanceOf[StructType].head.dataType, nullable = false)()
    val end = Alias(gathered(Max(GetStructField(window, 1))), "session_end")()
    val items = told(node, window)
    val named = items.zip(node.output).map { case (item, old) => if (item.exprId == old.exprId) old else Alias(item.toAttribute, old.name)(old.exprId) }
    Project(named, Aggregate(others :+ start, items :+ end, Session(others, window, start, node.child)))
  }
}
