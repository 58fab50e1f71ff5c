package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.{LeftOuter, RightOuter}
import org.apache.spark.sql.catalyst.plans.logical.{Generate, Join, LogicalPlan, Project, UnaryNode}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

/** A join whose rows are corrected for a limited time.
  *
  * For each of its `sides` that has rows of a stream, the time in microseconds at which they are over, whatever the other side does from then on, by
  * the watermark of which stream, and how much later that is than without the join. See `Retention`.
  */
case class Retained(sides: Seq[Int], overs: Seq[Expression], streams: Seq[String], retain: Seq[Long], child: LogicalPlan) extends UnaryNode {
  override def output: Seq[Attribute] = child.output
  override protected def withNewChildInternal(newChild: LogicalPlan): Retained = copy(child = newChild)
  def join: Join = child.asInstanceOf[Join]
  def over(side: Int): Option[Expression] = Some(sides.indexOf(side)).filter(_ >= 0).map(overs)

  /** The clock of a column that comes from a side and has `clock` there. */
  def delayed(clock: Clock, side: Int): Clock = {
    val preserved = join.joinType match {
      case LeftOuter => side == 0
      case RightOuter => side == 1
      case _ => true
    }
    val at = sides.indexOf(side)
    // What the other side is made of, or rows that the time of another stream frees, may be corrected for longer.
    if (at < 0 || !preserved || Retained.isIn(join.children(1 - side)) || clock.streams != Set(streams(at))) clock.copy(complete = false)
    else if (Retained.isIn(join.children(side))) clock // by the same time
    else clock.copy(delay = clock.delay + retain(at))
  }
}

object Retained {
  def isIn(plan: LogicalPlan): Boolean = plan.exists(_.isInstanceOf[Retained])

  /** Catalyst puts projections between the two, and joins that only choose rows beneath generators; without a join left, nothing is retained. */
  def sunk(retained: Retained): LogicalPlan = retained.child match {
    case _: Join => retained
    case row @ (_: Project | _: Generate) if retained.overs.forall(_.references.subsetOf(row.children.head.outputSet)) =>
      row.withNewChildren(Seq(sunk(retained.copy(child = row.children.head))))
    case other => other
  }
}

/** For Spark's batch engine the join says itself what counts. */
object RetainedStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case retained: Retained => planLater(retained.child) :: Nil
    case _ => Nil
  }
}
