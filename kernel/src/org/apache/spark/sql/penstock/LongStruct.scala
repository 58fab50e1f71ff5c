package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BaseGenericInternalRow, CreateNamedStruct, Expression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types.{DataType, LongType, StructType, TimestampNTZType, TimestampType}

/** A struct of times or long numbers, such as a window of time, without an object for each of them. */
case class LongStruct(dataType: StructType, children: Seq[Expression]) extends Expression {
  override def nullable: Boolean = false
  override def eval(row: InternalRow): Any = {
    val made = new LongRow(children.size)
    children.iterator.map(_.eval(row)).zipWithIndex.foreach { case (value, i) => if (value != null) made.set(i, value.asInstanceOf[Long]) }
    made
  }
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val row = classOf[LongRow].getName
    val made = ctx.freshName("made")
    val fields = children.zipWithIndex.map { case (child, i) =>
      val field = child.genCode(ctx)
      code"${field.code}\nif (!${field.isNull}) $made.set($i, ${field.value});"
    }
    val filled = fields.foldLeft(code"$row $made = new $row(${children.size});")((all, each) => code"$all\n$each")
    ev.copy(code = code"$filled\nInternalRow ${ev.value} = $made;", isNull = FalseLiteral)
  }
  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): LongStruct = copy(children = newChildren)
}

object LongStruct {
  /** The same struct, in this way where all its fields are numbers of 64 bits. */
  def of(struct: CreateNamedStruct): Expression =
    if (struct.valExprs.size <= 64 && struct.valExprs.forall(e => isLong(e.dataType))) LongStruct(struct.dataType, struct.valExprs) else struct

  private def isLong(of: DataType): Boolean = of == LongType || of == TimestampType || of == TimestampNTZType
}

/** At most 64 numbers; those that were not set are NULL. */
final class LongRow(override val numFields: Int) extends BaseGenericInternalRow {
  private val values = new Array[Long](numFields)
  private var present = 0L

  def set(i: Int, value: Long): Unit = {
    values(i) = value
    present |= 1L << i
  }
  override def isNullAt(i: Int): Boolean = (present >>> i & 1) == 0
  override def getLong(i: Int): Long = values(i)
  override protected def genericGet(i: Int): Any = if (isNullAt(i)) null else values(i)
  override def setNullAt(i: Int): Unit = present &= ~(1L << i)
  override def update(i: Int, value: Any): Unit = if (value == null) setNullAt(i) else set(i, value.asInstanceOf[Long])
}
