package penstock.kernel.engine

import org.apache.spark.{PartitionEvaluator, PartitionEvaluatorFactory}

/** What tasks do with their share of some rows.
  *
  * A closure would do; but Spark takes the byte code of every closure apart in every batch, which takes longer than a small batch's rows.
  */
trait Work[A, B] extends PartitionEvaluatorFactory[A, B] {
  def of(partition: Int, items: Iterator[A]): Iterator[B]

  override def createEvaluator(): PartitionEvaluator[A, B] = new PartitionEvaluator[A, B] {
    override def eval(partition: Int, inputs: Iterator[A]*): Iterator[B] = of(partition, inputs.head)
  }
}
