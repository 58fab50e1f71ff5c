package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, CollectList, CollectSet, CollectUnion}
import org.apache.spark.sql.catalyst.plans.logical.{Expand, Generate, LeafNode, LogicalPlan, Union}

/** Which columns of a plan hold arrays in an order that Spark leaves open.
  *
  * What was collected from rows is open; what was sorted since is not, nor is a list over a frame, which has the order of its window. What is
  * made of an open column is open. `known` are open columns of the relations that are read, as relation and column.
  */
final class OpenOrder(known: Set[(String, String)]) {
  def columns(plan: LogicalPlan): Seq[Attribute] = {
    val open = within(plan)
    plan.output.filter(a => open(a.exprId))
  }

  private def within(plan: LogicalPlan): Set[ExprId] = {
    val below = plan.children.map(within).foldLeft(Set.empty[ExprId])(_ ++ _)
    below ++ (plan match {
      case leaf: LeafNode => leaf.output.filter(a => known((Door.relation(leaf), a.name)))
      case union: Union => union.output.zipWithIndex.collect { case (a, i) if union.children.exists(c => below(c.output(i).exprId)) => a }
      case expand: Expand => expand.output.zipWithIndex.collect { case (a, i) if expand.projections.exists(each => isOpen(each(i), below)) => a }
      case generate: Generate if isOpen(generate.generator, below) => generate.generatorOutput
      case other => other.expressions.flatMap(_.collect { case a: Alias if isOpen(a.child, below) => a })
    }).map(_.exprId)
  }

  private def isOpen(e: Expression, open: Set[ExprId]): Boolean = e match {
    case a: Attribute => open(a.exprId)
    case s: ScalarSubquery => columns(s.plan).nonEmpty
    case sorted @ (_: SortArray | _: ArraySort) => sorted.children.head match {
      case AggregateExpression(Collected(value), _, _, _, _) => isOpen(value, open)
      case _ => false
    }
    case w @ WindowExpression(AggregateExpression(list: CollectList, _, _, _, _), _) if Ties.isSettled(w, list.child.dataType) => isOpen(list.child, open)
    case Collected(_) => true
    case other => other.children.exists(isOpen(_, open))
  }

  /** A function that gathers values of rows in an array. */
  private object Collected {
    def unapply(e: Expression): Option[Expression] = e match {
      case f: CollectList => Some(f.child)
      case f: CollectSet => Some(f.child)
      case f: CollectUnion => Some(f.child)
      case Distinct(f) => unapply(f)
      case _ => None
    }
  }
}
