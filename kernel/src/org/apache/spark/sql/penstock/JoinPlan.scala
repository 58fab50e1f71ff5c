package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.{Join => LogicalJoin}
import penstock.kernel.engine.{Edge, Join, JoinKind, Operator, Span}

/** A join taken apart: its kind, the keys of both sides, what else must hold, and where that is a range, the column by which each side is ordered. */
final class JoinPlan(node: LogicalJoin, closing: Option[Closing] = None) {
  val kind: String = node.joinType match {
    case _: InnerLike => "inner"
    case LeftOuter => "left"
    case RightOuter => "right"
    case FullOuter => "full"
    case LeftSemi => "semi"
    case LeftAnti => "anti"
    case _: ExistenceJoin => "exists"
    case LeftSingle => throw new Unsupported("a scalar subquery that refers to the row and may give several rows", "Spark would fail when it does; write max(...) in it")
    case other => throw new Unsupported(s"${other.sql} JOIN", "it is not supported yet")
  }
  private val (left, right, rest) = node match {
    case ExtractEquiJoinKeys(_, l, r, others, _, _, _, _) => (l, r, others)
    case _ => (Nil, Nil, node.condition)
  }
  val leftKeys: Seq[Expression] = left.map(AggregatePlan.keyed(_, "JOIN ON"))
  val rightKeys: Seq[Expression] = right.map(AggregatePlan.keyed(_, "JOIN ON"))
  val condition: Option[Expression] = rest

  /** The comparisons that bound a side: (its expression, the bound, whether that is the lower one). */
  private def bounds(mine: AttributeSet, theirs: AttributeSet): Seq[(Expression, Expression, Boolean)] = {
    def comparison(e: Expression): Option[(Expression, Expression, Boolean)] = e match {
      case GreaterThan(a, b) => Some((a, b, true))
      case GreaterThanOrEqual(a, b) => Some((a, b, true))
      case LessThan(a, b) => Some((a, b, false))
      case LessThanOrEqual(a, b) => Some((a, b, false))
      case _ => None
    }
    rest.toSeq.flatMap(JoinPlan.conjuncts).flatMap(comparison).flatMap { case (a, b, lower) =>
      if (of(a, mine) && of(b, theirs)) Some((a, b, lower)) else if (of(b, mine) && of(a, theirs)) Some((b, a, !lower)) else None
    }
  }
  private def of(e: Expression, side: AttributeSet): Boolean = e.references.nonEmpty && e.references.subsetOf(side)

  /** The expression that orders a side, with the bounds that the other side gives it. */
  private case class Ranged(column: Expression, from: Option[Expression], until: Option[Expression], distance: Long)

  /** Both bounds where they are of one expression, or of two that always have the same distance; otherwise the first.
    *
    * column <= until and from <= column + distance  =>  from - distance <= column <= until
    */
  private def spanned(mine: AttributeSet, theirs: AttributeSet): Option[Ranged] = {
    val (lower, upper) = bounds(mine, theirs).partition(_._3)
    val both = for ((column, until, _) <- upper; (above, from, _) <- lower; distance <- Distance.between(column, above) if distance >= 0)
      yield Ranged(column, Some(from), Some(until), distance)
    val timed = both.filter(each => isTime(each.column))
    val single = bounds(mine, theirs).sortBy { case (column, _, _) => if (isTime(column)) 0 else 1 }
    val untimed = if (single.headOption.exists(each => isTime(each._1))) None else both.headOption
    timed.headOption.orElse(untimed).orElse(single.headOption.map { case (column, bound, isLower) =>
      Ranged(column, Option.when(isLower)(bound), Option.when(!isLower)(bound), 0L)
    })
  }
  /** Whether an expression is a time that rows are freed by, or a constant more. */
  private def isTime(e: Expression): Boolean = closing.exists(_.bounds.exists(bound => !bound.keyed && bound.value.semanticEquals(Distance.parted(e)._1)))
  private val spans = Seq(spanned(node.left.outputSet, node.right.outputSet), spanned(node.right.outputSet, node.left.outputSet))
  /** What a side must send besides its columns: the expression that orders it, NULL where that fails. Rows are put in order before it is known whether
    * they have a partner, for which alone Spark would evaluate the condition.
    */
  private val ordering: Seq[Seq[NamedExpression]] = spans.map(_.toSeq.map(span => Alias(Attempted.of(span.column), "ordering")()))
  def extra(side: Int): Seq[Expression] = ordering(side).map(AggregatePlan.plain)
  def extraColumns(side: Int): Seq[Attribute] = ordering(side).map(_.toAttribute)

  /** `left` and `right` are the columns that the sides send, the extra ones last. */
  def operator(id: Int, left: Seq[Attribute], right: Seq[Attribute], edges: Seq[Edge]): Operator = {
    def bind(e: Expression, row: Seq[Attribute]): Expression = BindReferences.bindReference(e, AttributeSeq(row))
    val widths = (left.length, right.length)
    val rows = Seq((left, right), (right, left))
    val made = spans.zip(rows).map { case (span, (mine, theirs)) =>
      span.map(its => Span(mine.length - 1, its.column.dataType, its.from.map(bind(_, theirs)), its.until.map(bind(_, theirs)), its.distance, Attempted.mayFail(its.column)))
    }
    val ages = Seq(0, 1).map(side => closing.flatMap(_.ages(side, time => spans(side).filter(_ => isTime(spans(side).get.column)).fold(-1) { span =>
      if (Distance.parted(span.column)._1.semanticEquals(time)) made(side).get.column else -1
    }, spans(side).fold(0L)(span => Distance.parted(span.column)._2))))
    val dating = closing.flatMap(_.dating).filter(_ => ages.exists(_.isDefined))
    Join(id, leftKeys.length, JoinKind.all(kind), widths, condition.map(bind(_, left ++ right)), (made.head, made.last), edges,
      closing.flatMap(_.timing), dating, (ages.head, ages.last))
  }
}

object JoinPlan {
  def conjuncts(condition: Expression): Seq[Expression] = condition match {
    case And(a, b) => conjuncts(a) ++ conjuncts(b)
    case other => Seq(other)
  }
}
