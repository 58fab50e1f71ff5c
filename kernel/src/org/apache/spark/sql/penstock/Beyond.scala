package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{BinaryNode, LogicalPlan}
import org.apache.spark.sql.types.{IntegerType, LongType, StringType}

/** Records that come when rows of a stream with the same key are over, so that they correct them no more; once for each key.
  *
  * The left child has the rows of the stream, which are `over` at a time, the right one the changes of what corrects them, with the `record` that
  * makes each: its partition, its offset, and itself as JSON. In the output stand besides the watermark of the stream before the record, and when the
  * first of those rows was over, in microseconds.
  */
case class Beyond(
    stream: String, over: Expression, leftKeys: Seq[Expression], rightKeys: Seq[Expression], record: Seq[Attribute], output: Seq[Attribute],
    left: LogicalPlan, right: LogicalPlan) extends BinaryNode {
  override def producedAttributes: AttributeSet = AttributeSet(output)
  override protected def withNewChildrenInternal(newLeft: LogicalPlan, newRight: LogicalPlan): Beyond = copy(left = newLeft, right = newRight)
  override protected def doCanonicalize(): LogicalPlan =
    super.doCanonicalize().asInstanceOf[Beyond].copy(output = output.zipWithIndex.map { case (a, i) => a.withExprId(ExprId(i)).canonicalized.asInstanceOf[Attribute] })
  /** The keys of a side, of which equal ones have equal bytes. */
  def keys(side: Int): Seq[Expression] = (if (side == 0) leftKeys else rightKeys).map(AggregatePlan.keyed(_, "JOIN ON"))
  /** Whose watermark counts. */
  def streams: Array[String] = Array(stream)
}

object Beyond {
  /** The columns of the output. */
  def columns: Seq[Attribute] = Seq(
    AttributeReference("partition", IntegerType, nullable = false)(), AttributeReference("offset", LongType, nullable = false)(),
    AttributeReference("row", StringType)(), AttributeReference("watermark", LongType, nullable = false)(), AttributeReference("over", LongType, nullable = false)())
}
