package org.apache.spark.sql.penstock

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Ascending, Attribute, Expression, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Window}
import org.apache.spark.sql.catalyst.plans.physical.{AllTuples, ClusteredDistribution, Distribution, Partitioning}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy, UnaryExecNode}
import org.apache.spark.sql.execution.window.WindowExec

/** The order among rows that tie in the order of a window, and stay peers in it: more orders would make them rows one after the other.
  *
  * It is noted with the last order of the window, among what Spark calls expressions of the same order: there its optimizer keeps it, and looks at it no
  * further. The engine has it behind the window's own order, and Spark's batch engine gets the rows sorted by both.
  */
object PeerOrder {
  def noted(window: Window, ties: Seq[Expression]): Window =
    if (ties.isEmpty) window
    else window.copy(orderSpec = window.orderSpec.init :+ window.orderSpec.last.copy(sameOrderExpressions = ties))

  /** The order among peers; none where nothing follows it. */
  def of(orders: Seq[SortOrder]): Seq[SortOrder] =
    orders.lastOption.toSeq.flatMap(_.sameOrderExpressions).filterNot(_.foldable).map(SortOrder(_, Ascending))

  /** The order of the window without it. */
  def plain(orders: Seq[SortOrder]): Seq[SortOrder] = orders.map(_.copy(sameOrderExpressions = Nil))
}

object PeerOrderStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case window: Window if PeerOrder.of(window.orderSpec).nonEmpty =>
      val order = PeerOrder.plain(window.orderSpec)
      val sorted = SortedExec(window.partitionSpec, order ++ PeerOrder.of(window.orderSpec), planLater(window.child))
      WindowExec(window.windowExpressions, window.partitionSpec, order, sorted) :: Nil
    case _ => Nil
  }
}

/** Rows as they come, which is partition by partition, each in its order: Spark sorts them beneath, where they are not. A window above finds what it
  * asks for, and sorts no more.
  */
case class SortedExec(partition: Seq[Expression], order: Seq[SortOrder], child: SparkPlan) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override def requiredChildDistribution: Seq[Distribution] = Seq(if (partition.isEmpty) AllTuples else ClusteredDistribution(partition))
  override def requiredChildOrdering: Seq[Seq[SortOrder]] = Seq(partition.map(SortOrder(_, Ascending)) ++ order)
  override protected def doExecute(): RDD[InternalRow] = child.execute()
  override protected def withNewChildInternal(newChild: SparkPlan): SortedExec = copy(child = newChild)
}
