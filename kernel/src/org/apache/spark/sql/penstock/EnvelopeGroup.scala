package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types.{DataType, LongType}
import penstock.kernel.engine.Envelope

/** The group that an envelope belongs to, as a column. */
case class EnvelopeGroup(child: Expression, slots: Int) extends UnaryExpression {
  override def dataType: DataType = LongType
  override def nullable: Boolean = false
  override def eval(row: InternalRow): Any = Envelope.group(child.eval(row).asInstanceOf[Array[Byte]], slots)
  override def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val envelope = child.genCode(ctx)
    ev.copy(
      code = code"${envelope.code}\nlong ${ev.value} = penstock.kernel.engine.Envelope.group(${envelope.value}, $slots);",
      isNull = FalseLiteral)
  }
  override protected def withNewChildInternal(newChild: Expression): EnvelopeGroup = copy(child = newChild)
}
