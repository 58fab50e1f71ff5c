package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers
import org.apache.spark.sql.types._
import penstock.kernel.engine._

/** One aggregate function over the rows of a frame, which only ever takes rows: what it reads of a row, its fold once the place of
  * that is known, the columns that the fold fills, and the value made of them.
  */
final case class FrameFold(inputs: Seq[Expression], fold: Int => Fold, columns: Seq[AttributeReference], value: Expression)

object FrameFold {
  def of(function: AggregateFunction): FrameFold = function match {
    case f: Count => own(f, f.children.filter(_.nullable), CountFold(f.children.count(_.nullable)))
    case f: Sum => sum(f)
    case f: Average => average(f)
    case f: Min => own(f, Seq(f.child), GrowingExtreme(f.child.dataType, largest = false))
    case f: Max => own(f, Seq(f.child), GrowingExtreme(f.child.dataType, largest = true))
    case f: BitAndAgg => own(f, Seq(f.child), BitFold(f.child.dataType, "and"))
    case f: BitOrAgg => own(f, Seq(f.child), BitFold(f.child.dataType, "or"))
    case f: BitXorAgg => own(f, Seq(f.child), BitFold(f.child.dataType, "xor"))
    case f: First => picked(f.child, 1, fromLast = false, f.ignoreNulls)._1
    case f: Last => picked(f.child, 1, fromLast = true, f.ignoreNulls)._1
    case f: CollectList => direct(f, Seq(f.child), _ => ListFold(f.child.dataType, set = false, f.ignoreNulls))
    case f: CollectSet => direct(f, Seq(NormalizeFloatingNumbers.normalize(f.child)), _ => ListFold(f.child.dataType, set = true, f.ignoreNulls))
    case f: PercentileBase if Ranking.fits(f, distinct = false) =>
      direct(f, Ranking.arguments(f), at => InMemoryFold(Ranking.fold(f, at, distinct = false)))
    case f: Mode if Ranking.fits(f) => direct(f, Seq(NormalizeFloatingNumbers.normalize(f.child)), at => InMemoryFold(Ranking.fold(f, at, at + 1)))
    case f => bySpark(f)
  }

  /** The `nth` value of the frame from one end; and the column that says whether there is one. */
  def picked(child: Expression, nth: Int, fromLast: Boolean, ignoreNulls: Boolean): (FrameFold, AttributeReference) = {
    val value = AttributeReference("value", child.dataType)()
    val found = AttributeReference("found", BooleanType, nullable = false)()
    (FrameFold(Seq(child), _ => PickFold(child.dataType, nth, fromLast, ignoreNulls), Seq(value, found), value), found)
  }

  /** How many rows there are; or, with `fold`, how many of what it counts. */
  def counted(inputs: Seq[Expression] = Nil, fold: Fold = CountFold(0)): FrameFold = {
    val count = AttributeReference("count", LongType, nullable = false)()
    FrameFold(inputs, _ => fold, Seq(count), count)
  }

  private def own(f: DeclarativeAggregate, inputs: Seq[Expression], fold: Fold): FrameFold =
    FrameFold(inputs, _ => fold, f.aggBufferAttributes, f.evaluateExpression)

  private def direct(f: AggregateFunction, inputs: Seq[Expression], fold: Int => Fold): FrameFold = {
    val column = AttributeReference("value", f.dataType)()
    FrameFold(inputs, fold, Seq(column), column)
  }

  private def sum(f: Sum): FrameFold = f.child.dataType match {
    case d: DecimalType => own(f, Seq(f.child), DecimalSumFold(d, f.dataType.asInstanceOf[DecimalType], average = false))
    case whole @ (ByteType | ShortType | IntegerType | LongType) => own(f, Seq(f.child), WholeSumFold(whole, Overflow.of(f.evalContext.evalMode)))
    case real @ (FloatType | DoubleType) => own(f, Seq(f.child), DoubleSumFold(real, average = false))
    case _ => bySpark(f)
  }

  private def average(f: Average): FrameFold = f.child.dataType match {
    case d: DecimalType => own(f, Seq(f.child), DecimalSumFold(d, f.sumDataType.asInstanceOf[DecimalType], average = true))
    case number @ (ByteType | ShortType | IntegerType | LongType | FloatType | DoubleType) =>
      own(f, Seq(f.child), DoubleSumFold(number, average = true))
    case _ => bySpark(f)
  }

  /** Spark's own buffer, which takes the frame's rows in their order. */
  private def bySpark(f: AggregateFunction): FrameFold = f match {
    case _: KllSketchAggBase | _: KllMergeAggBase[_] => throw new Unsupported(f.sql, "its answer is not determined by its input")
    case d: DeclarativeAggregate => FrameFold(arguments(d), declarative(d, _), d.aggBufferAttributes, d.evaluateExpression)
    case t: TypedImperativeAggregate[_] =>
      val inputs = arguments(t)
      val types = inputs.map(_.dataType)
      direct(t, inputs, at => GrowingFold(ObjectFold(bound(t, at).asInstanceOf[TypedImperativeAggregate[AnyRef]]), Arguments(at, types, at + types.length)))
    case i: ImperativeAggregate =>
      direct(i, arguments(i), at => ImperativeFold(bound(i.withNewMutableAggBufferOffset(0), at).asInstanceOf[ImperativeAggregate]))
    case other => throw new Unsupported(other.sql, s"${other.prettyName} is not kept over windows")
  }

  private def arguments(f: AggregateFunction): Seq[Expression] = f.children.map {
    case order: SortOrder => order.child
    case other => other
  }

  /** The function with its arguments read from column `at` on; literal arguments stay. */
  private def bound(f: AggregateFunction, at: Int): Expression = replaced(f, (e, i) => BoundReference(at + i, e.dataType, e.nullable))

  private def replaced(f: AggregateFunction, argument: (Expression, Int) => Expression): Expression = {
    def read(e: Expression, i: Int): Expression = if (e.foldable) e else argument(e, i)
    f.withNewChildren(f.children.zipWithIndex.map {
      case (order: SortOrder, i) => order.copy(child = read(order.child, i), sameOrderExpressions = Nil)
      case (other, i) => read(other, i)
    })
  }

  /** The function's update, bound to the buffer's columns followed by the row's; its arguments begin at column `at` of the row. */
  private def declarative(d: DeclarativeAggregate, at: Int): Fold = {
    val names = d.children.map(c => AttributeReference("argument", c.dataType, c.nullable)())
    val fresh = replaced(d, (_, i) => names(i)).asInstanceOf[DeclarativeAggregate]
    val width = fresh.aggBufferAttributes.length
    val places = names.zipWithIndex.map { case (a, i) => a.exprId -> BoundReference(width + at + i, a.dataType, a.nullable) }.toMap
    val updates = fresh.updateExpressions.map { update =>
      val placed = update.transform { case a: AttributeReference if places.contains(a.exprId) => places(a.exprId) }
      BindReferences.bindReference(placed, AttributeSeq(fresh.aggBufferAttributes))
    }
    BufferFold(fresh.initialValues, updates)
  }
}
