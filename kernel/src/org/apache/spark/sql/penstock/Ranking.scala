package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{Mode, PercentileBase}
import org.apache.spark.sql.catalyst.util.{ArrayData, UnsafeRowUtils}
import org.apache.spark.sql.types.AtomicType
import penstock.kernel.engine.{Arguments, Fold, ModeFold, PercentileFold}

/** Functions whose answer is a matter of how values rank: exact percentiles, and modes. */
object Ranking {
  /** Whether the values of a percentile can be counted one by one: distinct ones not where how often they count is one of the arguments. */
  def fits(f: PercentileBase, distinct: Boolean): Boolean =
    percentages(f).nonEmpty && (!distinct || f.frequencyExpression.semanticEquals(Literal(1L)))

  /** Whether values of a mode that Spark calls equal have equal bytes, and the others an order. */
  def fits(f: Mode): Boolean = f.child.dataType.isInstanceOf[AtomicType] &&
    RowOrdering.isOrderable(f.child.dataType) && UnsafeRowUtils.isBinaryStable(f.child.dataType)

  /** What a percentile reads of a row: not its literals. */
  def arguments(f: PercentileBase): Seq[Expression] = f.child +: Seq(f.frequencyExpression).filterNot(_.foldable)

  /** The fold of a percentile whose arguments are read from column `at` on. */
  def fold(f: PercentileBase, at: Int, distinct: Boolean): Fold = {
    val read = arguments(f).zipWithIndex.map { case (argument, i) => BoundReference(at + i, argument.dataType, argument.nullable) }
    val children = f.children match {
      case Seq(_, percentages, frequency) if !frequency.foldable => Seq(read(0), percentages, read(1))
      case _ +: literals => read(0) +: literals
    }
    PercentileFold(f.withNewChildren(children).asInstanceOf[PercentileBase], percentages(f), distinct)
  }

  /** The fold of a mode whose value is column `at` of a row of so many columns. Where nothing says which of the values that are there most often it takes, it
    * takes the least of them: see `Ties`.
    */
  def fold(f: Mode, at: Int, width: Int): Fold = ModeFold(Arguments(at, Seq(f.child.dataType), width), f.reverseOpt.getOrElse(true))

  private def percentages(f: PercentileBase): Seq[Double] = f.percentageExpression.eval() match {
    case null => Nil
    case one: Double => Seq(one)
    case several: ArrayData => several.toDoubleArray().toSeq
  }
}
