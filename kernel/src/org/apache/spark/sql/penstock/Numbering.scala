package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.{DoubleType, IntegerType}

/** The numbers that window functions give to rows, as Spark's expressions over counts of rows. None of them can fail. */
object Numbering {
  val Wrapping: NumericEvalContext = NumericEvalContext(EvalMode.LEGACY)
  private val One = Literal(1L)

  def whole(count: Expression): Expression = Cast(count, IntegerType, None, EvalMode.LEGACY)
  def plusOne(count: Expression): Expression = Add(count, One, Wrapping)

  def ratio(part: Expression, all: Expression): Expression = Divide(real(part), real(all), Wrapping)

  /** `before` is how many rows come before the row and its peers. */
  def percentRank(before: Expression, size: Expression): Expression =
    If(GreaterThan(size, One), ratio(before, Subtract(size, One, Wrapping)), Literal(0.0))

  /** The first `size % buckets` buckets hold one row more than the others. */
  def tile(rowNumber: Expression, size: Expression, buckets: Int): Expression = {
    val least = IntegralDivide(size, Literal(buckets.toLong), Wrapping)
    val larger = Remainder(size, Literal(buckets.toLong), Wrapping)
    val index = Subtract(rowNumber, One, Wrapping)
    val inLarger = Multiply(larger, plusOne(least), Wrapping)
    val beyond = IntegralDivide(Subtract(index, inLarger, Wrapping), least, Wrapping)
    plusOne(If(LessThan(index, inLarger), IntegralDivide(index, plusOne(least), Wrapping), Add(larger, beyond, Wrapping)))
  }

  private def real(e: Expression): Expression = Cast(e, DoubleType, None, EvalMode.LEGACY)
}
