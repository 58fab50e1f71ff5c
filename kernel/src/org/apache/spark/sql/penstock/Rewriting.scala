package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, AggregateFunction, Complete, Count, First}
import org.apache.spark.sql.catalyst.planning.{ExtractEquiJoinKeys, PhysicalAggregation}
import org.apache.spark.sql.catalyst.plans.{ExistenceJoin, Inner, LeftAnti, LeftOuter, LeftSingle}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.types.{BooleanType, IntegerType}

/** What Catalyst leaves in an optimized plan for its own physical operators, said in joins and aggregates. */
object Rewriting {
  def apply(optimized: LogicalPlan): LogicalPlan = optimized.transformUp {
    case join @ Join(left, right, LeftAnti, Some(NotIn(l, r)), _) if l.references.subsetOf(left.outputSet) && r.references.subsetOf(right.outputSet) =>
      notIn(join, l, r)
    case join @ NotInSeveral(pairs, others) => notIn(join, pairs, others)
    case join @ Join(_, _, LeftSingle, _, _) => lookedUp(join)
    case aggregate: Aggregate if Session.of(aggregate).isDefined => Session.grouped(aggregate)
    case aggregate: Aggregate if asks(aggregate.aggregateExpressions) => answered(inTwo(aggregate))
    case node if asks(node.expressions) => answered(node)
    case window @ Window(_, _, _, first: WindowGroupLimit, _) if isFirst(window, first) => ranked(window, first)
    case retained: Retained => Retained.sunk(retained)
    case limit @ (_: GlobalLimit | _: Offset) => sunk(limit.asInstanceOf[UnaryNode])
  }

  /** A limit goes beneath projections and the functions of single rows, to the order that it is about. */
  private def sunk(limit: UnaryNode): LogicalPlan = limit.child match {
    case LocalLimit(_, below) => sunk(limit.withNewChildren(Seq(below)).asInstanceOf[UnaryNode])
    case row @ (_: Project | _: BaseEvalPython) => row.withNewChildren(Seq(sunk(limit.withNewChildren(row.children).asInstanceOf[UnaryNode])))
    case _ => limit
  }

  /** Whether all that is asked of the rows is their rank, and only the first of each partition are there. */
  private def isFirst(window: Window, first: WindowGroupLimit): Boolean =
    first.limit == 1 && first.partitionSpec == window.partitionSpec && first.orderSpec == window.orderSpec && window.windowExpressions.forall {
      case Alias(WindowExpression(rank, _), _) => rank.canonicalized == first.rankLikeFunction.canonicalized
      case _ => false
    }

  /** the rank of the first rows  =>  1 */
  private def ranked(window: Window, first: WindowGroupLimit): LogicalPlan =
    Project(first.output ++ window.windowExpressions.map(each => Alias(Literal(1), each.name)(each.exprId)), first)

  private def asks(expressions: Seq[Expression]): Boolean = expressions.exists(_.exists(_.isInstanceOf[ScalarSubquery]))

  /** The condition that Catalyst makes of NOT IN with one column, and of each where there are several: equal, or one of the two is NULL. */
  private object NotIn {
    def unapply(condition: Expression): Option[(Expression, Expression)] = condition match {
      case Or(EqualTo(l, r), IsNull(EqualTo(l2, r2))) if l.semanticEquals(l2) && r.semanticEquals(r2) => Some((l, r))
      case Or(IsNull(EqualTo(l2, r2)), EqualTo(l, r)) if l.semanticEquals(l2) && r.semanticEquals(r2) => Some((l, r))
      case _ => None
    }
  }

  /** No equal row, and either no row at all, or no NULL on either side. The two facts about the right side are one row. */
  private def notIn(join: Join, l: Expression, r: Expression): LogicalPlan = {
    val unmatched = join.copy(condition = Some(EqualTo(l, r)))
    val any = Alias(GreaterThan(whole(Count(Literal(1))), Literal(0L)), "any")()
    val nulls = Alias(GreaterThan(whole(Count(If(IsNull(r), Literal(1), Literal(null, IntegerType)))), Literal(0L)), "nulls")()
    val facts = Aggregate(Nil, Seq(any, nulls), join.right)
    val both = Join(unmatched, facts, Inner, None, JoinHint.NONE)
    Project(join.left.output, Filter(Or(Not(any.toAttribute), And(Not(nulls.toAttribute), IsNotNull(l))), both))
  }

  /** NOT IN where its columns are all that could bring rows together, among other conditions: the pairs of columns that are compared, and these. */
  private object NotInSeveral {
    def unapply(join: Join): Option[(Seq[(Expression, Expression)], Seq[Expression])] = join match {
      case Join(_, _, LeftAnti | ExistenceJoin(_), Some(condition), _) if ExtractEquiJoinKeys.unapply(join).isEmpty =>
        val (compared, others) = JoinPlan.conjuncts(condition).partition(pair(join, _).isDefined)
        Option.when(compared.nonEmpty)((compared.flatMap(pair(join, _)), others))
      case _ => None
    }
    private def pair(join: Join, condition: Expression): Option[(Expression, Expression)] = NotIn.unapply(condition).filter { case (l, r) =>
      of(l, join.left) && of(r, join.right) && UnsafeRowUtils.isBinaryStable(l.dataType)
    }
    private def of(e: Expression, side: LogicalPlan): Boolean = e.references.nonEmpty && e.references.subsetOf(side.outputSet)
  }

  /** Rows meet by equality; after that all rows meet those of the right side that have a NULL, and rows that have one themselves meet all of it. The
    * latter find them under a key that others have not, and so pass by.
    */
  private def notIn(join: Join, pairs: Seq[(Expression, Expression)], others: Seq[Expression]): LogicalPlan = {
    val equal = pairs.map { case (l, r) => EqualTo(l, r): Expression }
    val one = Alias(Literal(1), "one")()
    val byNullRight = nullIn(pairs.map(_._2)).map(nulls => (Filter(nulls, join.right), join.condition.get))
    val byNullLeft = nullIn(pairs.map(_._1)).map { nulls =>
      (Project(join.right.output :+ one, join.right), And(EqualTo(If(nulls, Literal(1), Literal(null, IntegerType)), one.toAttribute), join.condition.get))
    }
    val meetings = (join.right, (equal ++ others).reduce(And(_, _))) +: (byNullRight.toSeq ++ byNullLeft)
    join.joinType match {
      case ExistenceJoin(exists) =>
        val found = meetings.map(_ => AttributeReference(exists.name, BooleanType, nullable = false)())
        val met = meetings.zip(found).foldLeft(join.left) { case (rows, ((right, condition), each)) => Join(rows, right, ExistenceJoin(each), Some(condition), JoinHint.NONE) }
        Project(join.left.output :+ Alias(found.reduce[Expression](Or(_, _)), exists.name)(exists.exprId), met)
      case _ => meetings.foldLeft(join.left) { case (rows, (right, condition)) => Join(rows, right, LeftAnti, Some(condition), JoinHint.NONE) }
    }
  }

  private def nullIn(columns: Seq[Expression]): Option[Expression] = columns.filter(_.nullable).map(IsNull(_): Expression).reduceOption(Or(_, _))

  /** A subquery that finds one row for each row of the left side, by equality: the right side's rows are put together by their key, and a key that has
    * several of them fails where somebody asks for it. Other conditions stay as they are.
    */
  private def lookedUp(join: Join): LogicalPlan = join match {
    case ExtractEquiJoinKeys(_, asking, keys, None, _, _, _, _) if keys.nonEmpty =>
      val named = keys.map(key => Alias(key, "key")())
      val found = Alias(whole(First(CreateStruct(join.right.output), ignoreNulls = false)), "found")()
      val times = Alias(whole(Count(Literal(1))), "times")()
      val rows = Aggregate(keys, named ++ Seq(found, times), join.right)
      val equal = asking.zip(named).map { case (l, r) => EqualTo(l, r.toAttribute): Expression }.reduce(And(_, _))
      val columns = join.right.output.zipWithIndex.map { case (column, i) =>
        val one = GetStructField(found.toAttribute, i, Some(column.name))
        val failing = new RaiseError(Literal("a query inside an expression gives several rows")).copy(dataType = column.dataType)
        Alias(If(GreaterThan(times.toAttribute, Literal(1L)), failing, one), column.name)(column.exprId)
      }
      Project(join.left.output ++ columns, Join(join.left, rows, LeftOuter, Some(equal), JoinHint.NONE))
    case _ => join
  }

  private def whole(f: AggregateFunction): AggregateExpression = AggregateExpression(f, Complete, isDistinct = false)

  /** An aggregate, and above it what is made of its groups and functions: a subquery is no part of either. */
  private def inTwo(node: Aggregate): Project = {
    val PhysicalAggregation(groups, functions, results, child) = node: @unchecked
    val gathered = Aggregate(groups.map(AggregatePlan.plain), groups ++ functions.map(f => Alias(f, f.sql)(f.resultId)), child)
    Project(results, if (asks(gathered.expressions)) answered(gathered) else gathered)
  }

  /** Every scalar subquery becomes a relation of at most one row, joined to the node's input. */
  private def answered(node: LogicalPlan): LogicalPlan = {
    val found = node.expressions.flatMap(_.collect { case s: ScalarSubquery => s }).foldLeft(Seq.empty[ScalarSubquery]) { (known, each) =>
      if (known.exists(_.canonicalized == each.canonicalized)) known else known :+ each
    }
    val answers = found.map(each => each.canonicalized -> answer(each))
    val asked = node.transformExpressions { case s: ScalarSubquery => answers.find(_._1 == s.canonicalized).get._2.output.head }
    val changed = asked match {
      case Filter(condition, child) => filtered(condition, child, answers.map(_._2))
      case _ => asked.withNewChildren(answers.map(_._2).foldLeft(node.children.head)(beside) +: node.children.tail)
    }
    if (changed.output.map(_.exprId) == node.output.map(_.exprId)) changed else Project(node.output, changed)
  }

  private def beside(rows: LogicalPlan, answer: LogicalPlan): LogicalPlan = Join(rows, answer, LeftOuter, None, JoinHint.NONE)

  /** filter p of (rows beside an answer)  =>  rows joined with the answer on p, where p does not hold without an answer.
    *
    * As a condition of the join it says which rows another answer concerns.
    */
  private def filtered(condition: Expression, child: LogicalPlan, answers: Seq[LogicalPlan]): LogicalPlan = {
    val (joined, left) = answers.foldLeft((child, JoinPlan.conjuncts(condition))) { case ((rows, conditions), answer) =>
      val known = rows.outputSet ++ answer.outputSet
      val (its, others) = conditions.partition(each => each.references.subsetOf(known) && each.references.intersect(answer.outputSet).nonEmpty)
      if (its.exists(fails(_, answer.output.head))) (Join(rows, answer, Inner, Some(its.reduce(And(_, _))), JoinHint.NONE), others)
      else (beside(rows, answer), conditions)
    }
    left.reduceOption(And(_, _)).fold(joined)(Filter(_, joined))
  }

  /** Whether the condition cannot hold where the column is NULL. */
  private def fails(condition: Expression, column: Attribute): Boolean = condition match {
    case a: Attribute => a.exprId == column.exprId
    case other => other.nullIntolerant && other.children.exists(fails(_, column))
  }

  private def answer(subquery: ScalarSubquery): LogicalPlan = {
    if (subquery.outerAttrs.nonEmpty) throw new Unsupported(subquery.sql, "it refers to columns outside of it in a way that is no join")
    val column = subquery.plan.output.head
    val rows = apply(subquery.plan)
    Project(Seq(Alias(column, column.name)()), if (subquery.plan.maxRows.forall(_ > 1)) Single(rows) else rows)
  }
}

/** One row, or none; more than one are an error. */
case class Single(child: LogicalPlan) extends UnaryNode {
  override def output: Seq[Attribute] = child.output
  override def maxRows: Option[Long] = Some(1)
  override protected def withNewChildInternal(newChild: LogicalPlan): Single = copy(child = newChild)
}
