package penstock.kernel.engine

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy, UnaryExecNode}

/** What lies beneath a level, in Catalyst's tree. */
case class Beneath(child: LogicalPlan) extends UnaryNode {
  override def output: Seq[Attribute] = child.output
  override protected def withNewChildInternal(newChild: LogicalPlan): Beneath = copy(child = newChild)
}

object BeneathStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case beneath: Beneath => BeneathExec(beneath.output, planLater(beneath.child)) :: Nil
    case _ => Nil
  }
}

/** What lies beneath a level, at work.
  *
  * It stays with the driver. Spark's operator with state sends its whole plan to each of its tasks, with all levels beneath, which they never look at:
  * their rows come out of a shuffle.
  */
case class BeneathExec(output: Seq[Attribute], @transient child: SparkPlan) extends UnaryExecNode {
  override protected def doExecute(): RDD[InternalRow] = child.execute()
  override protected def withNewChildInternal(newChild: SparkPlan): BeneathExec = copy(child = newChild)
}
