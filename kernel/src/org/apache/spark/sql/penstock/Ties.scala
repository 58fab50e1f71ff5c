package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, AnyValue, CollectList, First, Last, ListAgg, MaxMinBy, Mode}
import org.apache.spark.sql.catalyst.optimizer.InlineCTE
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.{DataType, IntegerType}

/** Where a query leaves it to Spark which of several rows comes first, all columns decide, in order.
  *
  * Rows that tie in ORDER BY are put in order by the remaining columns where that makes a difference: under LIMIT, for functions that count or pick
  * rows of a window, for frames of ROWS, and for the nearest row of an as-of join. So the answer is one of those that Spark may give, always the same one; the batch engine gives it
  * too, if asked for this plan.
  *
  * In a frame of RANGE rows that tie are peers, and stay so: functions that follow the order of rows have theirs beside that of the window, see
  * `PeerOrder`. For them, and where a frame has all rows, the columns that they read decide: rows that are equal in these are alike to them.
  *
  * The order that decides a LIMIT need not be right beneath it: Spark lets rows go through filters, projections, generators and limits of subqueries as they
  * came, and takes the first of them. So the order is carried up to the LIMIT. Not out of a view, which is a set of rows.
  */
object Ties {
  def broken(analyzed: LogicalPlan): LogicalPlan = InlineCTE(alwaysInline = true)(analyzed).transformUpWithSubqueries {
    case PipeOperator(rows) => rows
    case window: Window => apart(window)
    case limit @ GlobalLimit(_, child) => beneath(limit.withNewChildren(Seq(sorted(child))).asInstanceOf[UnaryNode])
    case join: AsOfJoin => AsOfTimes.tied(join, rest(join.rightSortExprs.map(SortOrder(_, Ascending)), join.right.output).map(_.child))
    case offset @ Offset(_, child) if !child.isInstanceOf[GlobalLimit] => beneath(offset.withNewChildren(Seq(sorted(child))).asInstanceOf[UnaryNode])
  }.transformAllExpressionsWithSubqueries {
    case mode: Mode if mode.reverseOpt.isEmpty && Ranking.fits(mode) => mode.copy(reverseOpt = Some(true))
    case e @ AggregateExpression(list: ListAgg, _, false, _, _) if isOpen(list) => e.copy(aggregateFunction = list.copy(orderExpressions = list.orderExpressions :+ SortOrder(list.child, Ascending)))
  }

  /** Whether values of a list that has an order of its own may tie in it. */
  private def isOpen(list: ListAgg): Boolean =
    list.orderExpressions.nonEmpty && !list.child.foldable && !list.orderExpressions.exists(_.child.semanticEquals(list.child))

  /** A limit right above its order, beneath a projection that stood between them: in a subquery that refers to other rows, Spark counts the first ones
    * for each of these, and sees no order through a projection.
    */
  private def beneath(limit: UnaryNode): LogicalPlan = limit.child match {
    case Project(items, sort: Sort) => Project(items, limit.withNewChildren(Seq(sort)))
    case inner @ (_: LocalLimit | _: Offset) => beneath(inner.asInstanceOf[UnaryNode]) match {
      case Project(items, rows) => Project(items, limit.withNewChildren(Seq(rows)))
      case _ => limit
    }
    case _ => limit
  }

  /** The rows beneath a LIMIT or an OFFSET in an order that leaves nothing open. */
  private def sorted(plan: LogicalPlan): LogicalPlan = plan match {
    case LocalLimit(n, child) => LocalLimit(n, sorted(child))
    case Offset(n, child) => Offset(n, sorted(child))
    case limit: GlobalLimit => limit
    case Sort(order, true, child, hint) => Sort(order ++ rest(order, child.output), global = true, child, hint)
    case Project(items, Sort(order, true, child, hint)) => Project(items, Sort(order ++ rest(order, child.output), global = true, child, hint))
    case other => carried(other) match {
      case Some((rows, order)) => Project(other.output, Sort(order ++ rest(order, rows.output), global = true, rows))
      case None => Sort(rest(Nil, other.output), global = true, other)
    }
  }

  /** The plan with the columns of the order that its rows come in, and that order; nothing where they come in none. */
  private def carried(plan: LogicalPlan): Option[(LogicalPlan, Seq[SortOrder])] = plan match {
    case Sort(order, true, _, _) => Some((plan, order))
    case SubqueryAlias(_, child) => carried(child)
    case Project(items, child) => carried(child).map { case (rows, order) =>
      val needed = AttributeSet(order.flatMap(_.references)).filterNot(a => items.exists(_.exprId == a.exprId))
      (Project(items ++ needed, rows), order)
    }
    case expand: Expand => carried(expand.child).map { case (rows, order) => numbered(expand, rows, order) }
    case generate: Generate => carried(generate.child).map { case (rows, order) => numbered(generate, rows, order) }
    case _: Filter | _: GlobalLimit | _: LocalLimit | _: Offset | _: ResolvedHint =>
      carried(plan.children.head).map { case (rows, order) => (plan.withNewChildren(Seq(rows)), order) }
    case _ => None
  }

  /** Rows that `explode` makes of one come in the order of their positions; of other generators nothing is known but their columns. */
  private def numbered(generate: Generate, rows: LogicalPlan, order: Seq[SortOrder]): (LogicalPlan, Seq[SortOrder]) = generate.generator match {
    case Explode(elements) =>
      val position = AttributeReference("position", IntegerType)()
      val made = generate.copy(generator = PosExplode(elements), generatorOutput = position +: generate.generatorOutput, child = rows)
      (made, order :+ SortOrder(position, Ascending))
    case _: PosExplode => (generate.copy(child = rows), order :+ SortOrder(generate.generatorOutput.head, Ascending))
    case _ => (generate.copy(child = rows), order)
  }

  /** Rows that UNPIVOT makes of one come in the order in which it has the columns. */
  private def numbered(expand: Expand, rows: LogicalPlan, order: Seq[SortOrder]): (LogicalPlan, Seq[SortOrder]) = {
    val needed = AttributeSet(order.flatMap(_.references)).filterNot(a => expand.output.exists(_.exprId == a.exprId)).toSeq
    val position = AttributeReference("position", IntegerType)()
    val made = expand.projections.zipWithIndex.map { case (values, i) => values ++ needed :+ Literal(i) }
    (Expand(made, expand.output ++ needed :+ position, rows), order :+ SortOrder(position, Ascending))
  }

  /** Functions that need it get a window of their own, for others an order that leaves ties is part of what they mean. */
  private def apart(window: Window): LogicalPlan = {
    val (needing, others) = window.windowExpressions.partition(depends)
    if (needing.isEmpty) among(window)
    else {
      val below = if (others.isEmpty) window.child else among(window.copy(windowExpressions = others))
      val deciding = if (needing.forall(_.exists(isOfAll))) read(needing, window) else window.child.output
      val order = window.orderSpec ++ rest(window.orderSpec, deciding)
      val respecified = needing.map(_.transform { case w: WindowExpression => w.copy(windowSpec = w.windowSpec.copy(orderSpec = order)) }.asInstanceOf[NamedExpression])
      val above = Window(respecified, window.partitionSpec, order, below)
      if (others.isEmpty) above else Project(window.output, above)
    }
  }

  /** The window with an order of peers, where one of its functions follows it. */
  private def among(window: Window): Window = {
    val following = window.windowExpressions.filter(_.exists { case w: WindowExpression => follows(w.windowFunction); case _ => false })
    PeerOrder.noted(window, rest(window.orderSpec, read(following, window)).map(_.child))
  }

  /** The columns that functions of a window read. */
  private def read(functions: Seq[NamedExpression], window: Window): Seq[Attribute] = {
    val theirs = AttributeSet(functions.flatMap(_.collect { case w: WindowExpression => w.windowFunction }))
    window.child.output.filter(theirs.contains)
  }

  private def depends(e: NamedExpression): Boolean = e.exists {
    case WindowExpression(_: Rank | _: DenseRank | _: PercentRank | _: CumeDist, _) => false
    case w @ WindowExpression(f @ (_: AggregateExpression | _: NthValue), spec) => if (isOfAll(w)) follows(f) else isByRows(spec)
    case _: WindowExpression => true
    case _ => false
  }

  private def isByRows(spec: WindowSpecDefinition): Boolean = spec.frameSpecification match {
    case frame: SpecifiedWindowFrame => frame.frameType == RowFrame
    case _ => false
  }

  /** Whether all rows of the partition are in the frame. */
  private def isOfAll(e: Expression): Boolean = e match {
    case WindowExpression(_, WindowSpecDefinition(_, _, SpecifiedWindowFrame(_, UnboundedPreceding, UnboundedFollowing))) => true
    case _ => false
  }

  /** Whether a list of a window stands in an order that leaves nothing open. */
  def isSettled(list: WindowExpression, values: DataType): Boolean =
    RowOrdering.isOrderable(values) || isByRows(list.windowSpec) && !isOfAll(list)

  /** Whether the answer depends on the order of the rows, whatever the frame. */
  private def follows(function: Expression): Boolean = function match {
    case AggregateExpression(f, _, _, _, _) => follows(f)
    case list: ListAgg => list.orderExpressions.isEmpty
    case _: First | _: Last | _: AnyValue | _: NthValue | _: CollectList | _: MaxMinBy => true
    case _ => false
  }

  private def rest(order: Seq[SortOrder], columns: Seq[Attribute]): Seq[SortOrder] = {
    val named = order.map(_.child)
    columns.filter(c => RowOrdering.isOrderable(c.dataType) && !named.exists(_.semanticEquals(c))).map(SortOrder(_, Ascending))
  }
}
