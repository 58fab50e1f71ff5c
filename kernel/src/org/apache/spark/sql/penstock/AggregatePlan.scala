package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{Average, BitAndAgg, BitOrAgg, BitXorAgg, CollectList, CollectSet, CollectUnion, Count,
  DeclarativeAggregate, ImperativeAggregate, ListAgg, Max, Min, Mode, PercentileBase, Sum, TypedImperativeAggregate, AggregateExpression, AggregateFunction}
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers
import org.apache.spark.sql.catalyst.planning.PhysicalAggregation
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate => LogicalAggregate}
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.types._
import penstock.kernel.engine._

/** An aggregate that cannot be kept: what and why, for the planner to say. */
final class Unsupported(val construct: String, val reason: String) extends RuntimeException(s"$construct: $reason")

/** An aggregate taken apart: what its input must send, how that is gathered, and how the answer is made from it. */
final class AggregatePlan(node: LogicalAggregate, growing: Boolean) {
  private val PhysicalAggregation(groups, functions, results, _) = node: @unchecked

  /** The key's expressions, over the input; equal groups have equal bytes. */
  val keys: Seq[Expression] = groups.map(each => AggregatePlan.keyed(AggregatePlan.plain(each), "GROUP BY"))

  private val planned: Seq[Planned] = functions.map(f => plan(Distinct.shown(f)))
  /** The input row's expressions: the arguments of each function, then its filter. */
  val inputs: Seq[Expression] = planned.flatMap(p => p.inputs ++ p.filter)
  val gathering: Gathering = Gathering(placed, inputs.length)
  val ordered: Boolean = planned.exists(_.ordered)
  val buffer: Seq[DataType] = planned.flatMap(_.slots.map(_.dataType))
  val keyWidth: Int = keys.length

  /** The result's expressions, bound to the key's columns followed by the buffer's. */
  val result: Seq[Expression] = {
    val keyAttributes = groups.map(_.toAttribute)
    val values = planned.map(p => p.expression.resultAttribute.exprId -> p.value).toMap
    val row = AttributeSeq(keyAttributes ++ planned.flatMap(_.slots))
    results.map { each =>
      val whole = each.transform { case a: AttributeReference if values.contains(a.exprId) => values(a.exprId) }
      BindReferences.bindReference[Expression](AggregatePlan.plain(whole.asInstanceOf[NamedExpression]), row)
    }
  }

  /** Of groups by sessions whose rows only come, and that can be put together: the time of a row and the end of its gap. Nothing elsewhere. */
  val gap: Seq[Expression] = node.child match {
    case session: Session if growing && gathering.merges && !gathering.keeps && groups.lastOption.exists(_.exprId == session.start.exprId) &&
        !inputs.exists(_.references.contains(session.start)) => Seq(GetStructField(session.window, 0), GetStructField(session.window, 1))
    case _ => Nil
  }

  def operator(id: Int, edges: Seq[Edge], closing: Option[Closing]): Operator = {
    val made = Aggregate(id, keyWidth, gathering, buffer, result, ordered, edges, closing.flatMap(_.timing))
    if (gap.nonEmpty) GrowingSessions(made, closing.flatMap(_.dating))
    else closing.flatMap(_.dating).fold[Operator](made)(SessionGroups(made, node.aggregateExpressions.indexWhere(Session.isEnd(node, _)), _))
  }

  /** For each key its position among the output's columns, or -1. */
  val keyColumns: Array[Int] = groups.map(g => results.indexWhere(r => AggregatePlan.plain(r) match {
    case a: AttributeReference => a.exprId == g.exprId
    case _ => false
  })).toArray

  /** For each key the position of an output column that tells it, or -1: the key itself, or the start or the end of a window. */
  val tellingColumns: Array[Int] = groups.zip(keyColumns).map { case (group, at) =>
    if (at >= 0 || !TimeWindows.isMadeIn(node.child, group.toAttribute)) at
    else results.indexWhere(r => AggregatePlan.plain(r) match {
      case GetStructField(a: AttributeReference, _, _) => a.exprId == group.exprId
      case _ => false
    })
  }.toArray

  private def placed: Seq[Folded] = {
    var at = 0
    planned.map { p =>
      val input = at
      at += p.inputs.length + p.filter.size
      Folded(p.fold(input), input, if (p.filter.isDefined) at - 1 else -1, p.slots.length)
    }
  }

  /** One function: its fold once its place in the row is known, the columns it fills, and the value made of them. */
  private case class Planned(
      expression: AggregateExpression, inputs: Seq[Expression], fold: Int => Fold, slots: Seq[AttributeReference], value: Expression,
      ordered: Boolean = false) {
    def filter: Option[Expression] = expression.filter
  }

  private def plan(e: AggregateExpression): Planned = {
    AggregatePlan.refuse(e)
    e.aggregateFunction match {
      case f: Count =>
        val counted = if (e.isDistinct) f.children else f.children.filter(_.nullable)
        undone(e, f, counted, CountFold(counted.length))
      case f: Sum => undone(e, f, Seq(f.child), sum(e, f))
      case f: Average => undone(e, f, Seq(f.child), average(e, f))
      case f: BitXorAgg => undone(e, f, Seq(f.child), BitFold(f.child.dataType, "xor"))
      // What follows is the same with DISTINCT and without.
      case f: Min => own(e, f, Seq(f.child), _ => extreme(f.child.dataType, largest = false))
      case f: Max => own(e, f, Seq(f.child), _ => extreme(f.child.dataType, largest = true))
      case f: BitAndAgg => own(e, f, Seq(f.child), _ => BitFold(f.child.dataType, "and"))
      case f: BitOrAgg => own(e, f, Seq(f.child), _ => BitFold(f.child.dataType, "or"))
      case f: CollectSet if f.ignoreNulls => direct(e, f, Seq(NormalizeFloatingNumbers.normalize(f.child)), _ => CollectFold(f.child.dataType, set = true), ordered = false)
      case f: CollectList if f.ignoreNulls && !e.isDistinct => direct(e, f, Seq(f.child), _ => CollectFold(f.child.dataType, set = false), ordered = true)
      case f: PercentileBase if Ranking.fits(f, e.isDistinct) => ranked(e, f)
      case f if e.isDistinct => again(distinct(buffered(e, f)), RecountedValuesFold(_, _, distinct = true))
      case f: Mode if Ranking.fits(f) => direct(e, f, Seq(NormalizeFloatingNumbers.normalize(f.child)), at => Ranking.fold(f, at, inputs.length), ordered = false)
      case f: CollectUnion if f.ignoreNulls => again(buffered(e, f), UnionFold)
      case f if growing && !GrowingFold.hasValues(f) => resumed(buffered(e, f))
      case f if AggregatePlan.followsRows(f) => again(buffered(e, f), RecountedFold(_, _, growing))
      case f => again(buffered(e, f), RecountedValuesFold(_, _, distinct = false))
    }
  }

  /** A function whose fold takes rows back exactly. */
  private def undone(e: AggregateExpression, f: DeclarativeAggregate, inputs: Seq[Expression], fold: Fold): Planned =
    if (!e.isDistinct || inputs.isEmpty) own(e, f, inputs, _ => fold)
    else again(distinct(own(e, f, inputs, _ => fold)), if (growing && fold.objects == 0) GrowingDistinctFold(_, _) else DistinctFold(_, _))

  private def distinct(p: Planned): Planned = p.copy(inputs = p.inputs.map(AggregatePlan.keyed(_, "DISTINCT")))

  /** The same function by another fold around its own, which keeps the arguments. */
  private def again(p: Planned, around: (Fold, Arguments) => Fold): Planned =
    p.copy(fold = at => around(p.fold(at), arguments(p, at)), ordered = false)

  /** The same function where rows only come: one that works on an object needs the latest rows beside it. The object has a limit. */
  private def resumed(p: Planned): Planned = p.copy(fold = at => p.fold(at) match {
    case plain: ObjectFold => GrowingFold(plain, arguments(p, at))
    case other => other
  })

  private def arguments(p: Planned, at: Int): Arguments = Arguments(at, p.inputs.map(_.dataType), inputs.length)

  private def own(e: AggregateExpression, f: DeclarativeAggregate, inputs: Seq[Expression], fold: Int => Fold): Planned =
    Planned(e, inputs, fold, f.aggBufferAttributes, f.evaluateExpression)

  private def direct(e: AggregateExpression, f: AggregateFunction, inputs: Seq[Expression], fold: Int => Fold, ordered: Boolean): Planned = {
    val slot = AttributeReference("value", f.dataType)()
    Planned(e, inputs, fold, Seq(slot), slot, ordered)
  }

  private def ranked(e: AggregateExpression, f: PercentileBase): Planned = {
    val planned = direct(e, f, Ranking.arguments(f), Ranking.fold(f, _, e.isDistinct), ordered = false)
    if (e.isDistinct) distinct(planned) else planned
  }

  private def sum(e: AggregateExpression, f: Sum): Fold = f.child.dataType match {
    case d: DecimalType => DecimalSumFold(d, f.dataType.asInstanceOf[DecimalType], average = false)
    case ByteType | ShortType | IntegerType | LongType => WholeSumFold(f.child.dataType, Overflow.of(f.evalContext.evalMode))
    case FloatType | DoubleType => DoubleSumFold(f.child.dataType, average = false)
    case _: DayTimeIntervalType | _: YearMonthIntervalType => IntervalSumFold(f.child.dataType, average = false, Overflow.of(f.evalContext.evalMode))
    case other => throw new Unsupported(e.sql, s"a sum of ${other.sql} is not supported yet")
  }

  private def average(e: AggregateExpression, f: Average): Fold = f.child.dataType match {
    case d: DecimalType => DecimalSumFold(d, f.sumDataType.asInstanceOf[DecimalType], average = true)
    case ByteType | ShortType | IntegerType | LongType => WholeAverageFold(f.child.dataType)
    case FloatType | DoubleType => DoubleSumFold(f.child.dataType, average = true)
    case _: DayTimeIntervalType | _: YearMonthIntervalType => IntervalSumFold(f.child.dataType, average = true, Overflow.of(f.evalMode))
    case other => throw new Unsupported(e.sql, s"an average of ${other.sql} is not supported yet")
  }

  private def extreme(valueType: DataType, largest: Boolean): Fold =
    if (growing) GrowingExtreme.of(valueType, largest) else Extreme(valueType, largest)

  private def buffered(e: AggregateExpression, f: AggregateFunction): Planned = {
    if (!f.deterministic && !AggregatePlan.byOrder(f)) throw new Unsupported(e.sql, "its answer is not determined by its input")
    f match {
      case d: DeclarativeAggregate => Planned(e, d.children, declarative(d, _), d.aggBufferAttributes, d.evaluateExpression, ordered = true)
      case t: TypedImperativeAggregate[_] =>
        direct(e, t, arguments(t), at => ObjectFold(bound(t, at).asInstanceOf[TypedImperativeAggregate[AnyRef]]), ordered = true)
      case i: ImperativeAggregate =>
        direct(e, i, i.children, at => ImperativeFold(bound(i.withNewMutableAggBufferOffset(0), at).asInstanceOf[ImperativeAggregate]), ordered = true)
      case other => throw new Unsupported(e.sql, s"${other.prettyName} is not supported yet")
    }
  }

  /** What the function reads of a row; an order within the function reads the value that it orders by. */
  private def arguments(f: AggregateFunction): Seq[Expression] = f.children.map {
    case order: SortOrder => order.child
    case other => other
  }

  /** The function with its arguments read from the row, from column `at` on; literal arguments stay. */
  private def bound(f: AggregateFunction, at: Int): Expression = {
    def read(e: Expression, i: Int): Expression = if (e.foldable) e else BoundReference(at + i, e.dataType, e.nullable)
    f.withNewChildren(f.children.zipWithIndex.map {
      case (order: SortOrder, i) => order.copy(child = read(order.child, i), sameOrderExpressions = Nil)
      case (other, i) => read(other, i)
    })
  }

  private def declarative(d: DeclarativeAggregate, at: Int): Fold = {
    val arguments = d.children.map(c => AttributeReference("argument", c.dataType, c.nullable)())
    val fresh = d.withNewChildren(arguments).asInstanceOf[DeclarativeAggregate]
    val bufferWidth = fresh.aggBufferAttributes.length
    val places = arguments.zipWithIndex.map { case (a, i) => a.exprId -> BoundReference(bufferWidth + at + i, a.dataType, a.nullable) }.toMap
    val updates = fresh.updateExpressions.map { u =>
      val withArguments = u.transform { case a: AttributeReference if places.contains(a.exprId) => places(a.exprId) }
      BindReferences.bindReference(withArguments, AttributeSeq(fresh.aggBufferAttributes))
    }
    BufferFold(fresh.initialValues, updates)
  }
}

object AggregatePlan {
  /** An expression that rows are brought together by: values that Spark calls equal have equal bytes. A text under a collation stands for all that are
    * equal to it: where nothing shows which of them it is, its key does.
    */
  def keyed(e: Expression, clause: String): Expression = {
    val expression = NormalizeFloatingNumbers.normalize(e)
    if (UnsafeRowUtils.isBinaryStable(expression.dataType)) expression
    else if (Unseen(clause) && expression.dataType.isInstanceOf[StringType]) CollationKey(expression)
    else throw new Unsupported(s"$clause of ${expression.dataType.sql}",
      "texts that are equal under a collation cannot be one key here yet; write lower(...), or another function that makes them the same")
  }
  private val Unseen = Set("JOIN ON", "PARTITION BY")
  private def refuse(e: AggregateExpression): Unit =
    if (e.aggregateFunction.prettyName.startsWith("kll_"))
      throw new Unsupported(e.sql, "KLL sketches draw from a random source that all of the process shares, so that the same rows give other bytes")
  def plain(e: NamedExpression): Expression = e match {
    case Alias(child, _) => child
    case other => other
  }
  /** Whether the answer depends on the order in which rows came: not that of a sketch, a percentile, a mode or a histogram. */
  private def followsRows(f: AggregateFunction): Boolean = f match {
    case _: DeclarativeAggregate | _: ListAgg => true
    case _: Mode => false
    case other => byOrder(other)
  }
  /** Functions that Spark calls not deterministic only because they follow the order of rows, which here is the order of places. */
  private def byOrder(f: AggregateFunction): Boolean =
    Set("first", "last", "any_value", "first_value", "last_value", "mode", "max_by", "min_by", "collect_list").contains(f.prettyName)
}
