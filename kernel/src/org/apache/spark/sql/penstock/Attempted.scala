package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.types.{AtomicType, DataType}

/** What an expression gives, NULL where it fails.
  *
  * Not Spark's own `TryEval`: parts that stand in an expression twice are evaluated ahead of all others, outside of what would catch their failure.
  * They are not looked for in an expression that is not compiled.
  */
case class Attempted(child: Expression) extends UnaryExpression with CodegenFallback {
  override def dataType: DataType = child.dataType
  override def nullable: Boolean = true
  override def eval(row: InternalRow): Any =
    try child.eval(row)
    catch { case _: Exception => null }
  override protected def withNewChildInternal(changed: Expression): Attempted = copy(child = changed)
}

object Attempted {
  /** The expression itself, where it cannot fail. */
  def of(expression: Expression): Expression = if (mayFail(expression)) Attempted(expression) else expression

  /** Unless all of it is known not to: some functions of Spark's fail, and do not say that they may. */
  def mayFail(expression: Expression): Boolean = expression.exists {
    case _: Attribute | _: BoundReference | _: Literal | _: GetStructField => false
    case number: BinaryArithmetic => number.evalMode == EvalMode.ANSI
    case number: UnaryMinus => number.failOnError
    case number: Abs => number.failOnError
    case cast: Cast => cast.evalMode == EvalMode.ANSI || !Seq(cast.child.dataType, cast.dataType).forall(_.isInstanceOf[AtomicType])
    case _ => true
  }
}
