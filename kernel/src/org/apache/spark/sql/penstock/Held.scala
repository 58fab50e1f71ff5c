package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

/** Rows that are shown once they are complete: when the watermarks of all `streams` have come to `over`, in microseconds. */
case class Held(over: Expression, streams: Seq[String], child: LogicalPlan) extends UnaryNode {
  override def output: Seq[Attribute] = child.output
  override protected def withNewChildInternal(newChild: LogicalPlan): Held = copy(child = newChild)
}
