package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.InlineCTE
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types.LongType

/** Rows that come too late for their window are left out of it.
  *
  * A window is grouped by; the time in it is the event time of a stream, and the stream's rows have a stamp, the watermark that stood before
  * them. The condition that the window was still open then is put where the window is grouped by. It is part of the query from there on: for
  * the engine, which sends what it leaves out elsewhere, and for Spark's batch engine, which gives the same answer.
  *
  * @param streams the event time of each stream that has one, by the stream's name
  * @param allowed for so many microseconds after its end a window may still be corrected
  */
final class Lateness(streams: Map[String, String], allowed: Long) {

  /** The query without rows that are late; with `complete`, by stream, without windows that are still open at that time. */
  def left(query: LogicalPlan, complete: Map[String, Long]): LogicalPlan = within(plain(query)) { aggregate =>
    val timely = grouped(aggregate).fold(aggregate)(found => aggregate.copy(child = Filter(Not(found.late), found.rows.plan)))
    val clock = if (complete.isEmpty) None else new Clocks(streams).of(timely)
    clock.fold(timely) { case (stream, at) =>
      val end = TimeWindows.micros(GetStructField(timely.groupingExpressions(at), 1))
      timely.copy(child = Filter(LessThanOrEqual(end, Literal(complete(stream))), timely.child))
    }
  }

  /** What is left out: for each window that is grouped by, the rows of the stream that are late, once for each window that they miss. */
  def late(query: LogicalPlan): Seq[LogicalPlan] = {
    val found = Seq.newBuilder[LogicalPlan]
    within(plain(query)) { aggregate =>
      found ++= missed(aggregate)
      aggregate
    }
    found.result().distinctBy(_.canonicalized) // a window may be grouped by in several places
  }

  /** The query without what is only a name: common tables, aliases, streams. */
  private def plain(query: LogicalPlan): LogicalPlan = EliminateSubqueryAliases(InlineCTE(alwaysInline = true)(query)).transformUpWithSubqueries {
    case alias: SubqueryAlias => alias.child // of queries in expressions too
    case view: View if streams.contains(view.desc.identifier.table) => view.child
  }

  /** Changes the query's own aggregates, the lower ones first; what another view has it takes as it is. */
  private def within(plan: LogicalPlan)(change: Aggregate => Aggregate): LogicalPlan = plan match {
    case view: View => view
    case _ =>
      val below = plan.mapChildren(within(_)(change)).transformExpressionsUp {
        case query: PlanExpression[LogicalPlan @unchecked] => query.withNewPlan(within(query.plan)(change))
      }
      below match {
        case aggregate: Aggregate => change(aggregate)
        case other => other
      }
  }

  /** A window that is grouped by, over rows with their stamps. */
  private case class Grouped(window: Attribute, rows: Carried) {
    def late: Expression = rows.late(TimeWindows.micros(GetStructField(window, 1)))
  }

  private def grouped(aggregate: Aggregate): Option[Grouped] =
    windowsOf(aggregate).flatMap(window => carried(aggregate.child, window).map(Grouped(window, _))).headOption

  private def windowsOf(aggregate: Aggregate): Seq[Attribute] =
    aggregate.groupingExpressions.collect { case a: Attribute if TimeWindows.isWindow(a.dataType) => a }

  /** A plan whose rows have, behind the rest, the columns of the stream's record from which their time comes.
    *
    * @param bound a time that is more than so many microseconds after the record was appended is not plausible
    */
  private case class Carried(stream: String, plan: LogicalPlan, own: Seq[Attribute], hidden: Seq[Attribute], bound: Option[Long]) {
    def record: Seq[Attribute] = own ++ hidden
    def stamp: Attribute = hidden.find(_.name == Lateness.Stamp).get
    def implausible: Option[Expression] = bound.map { most =>
      val (time, appended) = (own.find(_.name.equalsIgnoreCase(streams(stream))).get, hidden.find(_.name == Lateness.Appended).get)
      Coalesce(Seq(GreaterThan(TimeWindows.micros(time), Add(TimeWindows.micros(appended), Literal(most))), Literal(false)))
    }
    /** Whether a row does not count for a window with this end. */
    def late(end: Expression): Expression = {
      val passed = Lateness.passed(end, stamp, allowed)
      implausible.fold(passed)(Or(_, passed))
    }
    /** What is kept of the rows of a plan over this one. */
    def letters(window: Attribute, rows: LogicalPlan): LogicalPlan = Lateness.letters(stream, own, hidden, window, rows, implausible)
    def over(node: LogicalPlan => LogicalPlan): Carried = copy(plan = node(plan))
    /** Those that the node's output does not have yet. */
    def more(output: Seq[NamedExpression]): Seq[Attribute] = record.filterNot(each => output.exists(_.exprId == each.exprId))
  }

  private def carried(plan: LogicalPlan, column: Attribute): Option[Carried] = plan match {
    case relation: DataSourceV2Relation => record(relation, column)
    case Project(items, child) => items.find(_.exprId == column.exprId).flatMap(below).flatMap(carried(child, _))
        .map(found => found.over(Project(items ++ found.more(items), _)))
    case expand: Expand => expanded(expand, column)
    case generate: Generate if generate.child.outputSet.contains(column) =>
      carried(generate.child, column).map(_.over(child => generate.copy(unrequiredChildIndex = Nil, child = child)))
    case join: Join =>
      if (join.left.outputSet.contains(column)) carried(join.left, column).map(_.over(left => join.copy(left = left)))
      else carried(join.right, column).map(_.over(right => join.copy(right = right)))
    case _: Filter | _: Sort | _: RepartitionOperation | _: ResolvedHint =>
      carried(plan.children.head, column).map(_.over(child => plan.withNewChildren(Seq(child))))
    case union: Union => united(union, column)
    case _ => None
  }

  private def record(relation: DataSourceV2Relation, column: Attribute): Option[Carried] = {
    val name = relation.options.get("relation")
    if (!streams.get(name).exists(_.equalsIgnoreCase(column.name))) None
    else {
      val whole = relation.withMetadataColumns()
      val bound = Option(relation.options.get("plausible")).map(_.toLong)
      Some(Carried(name, whole, relation.output, whole.output.drop(relation.output.size), bound))
    }
  }

  /** The column that an item of a projection stands for, or is made from as windows are. */
  private def below(item: NamedExpression): Option[Attribute] = item match {
    case a: Attribute => Some(a)
    case Alias(a: Attribute, _) => Some(a)
    case other => TimeWindows.source(other)
  }

  private def expanded(expand: Expand, column: Attribute): Option[Carried] = {
    val at = expand.output.indexWhere(_.exprId == column.exprId)
    val sources = expand.projections.map(_(at)).map { case a: Attribute => Some(a); case e => TimeWindows.source(e) }.distinct
    sources match {
      case Seq(Some(source)) => carried(expand.child, source).map { found =>
        val more = found.more(expand.output)
        found.over(child => Expand(expand.projections.map(_ ++ more), expand.output ++ more, child))
      }
      case _ => None
    }
  }

  /** Branches of one stream: each has a record of its own. */
  private def united(union: Union, column: Attribute): Option[Carried] = {
    val at = union.output.indexWhere(_.exprId == column.exprId)
    val found = union.children.map(child => carried(child, child.output(at)).map(each => (child, each)))
    if (found.exists(_.isEmpty) || found.flatten.map(_._2.stream).distinct.size > 1) None
    else {
      val children = found.flatten.map { case (child, each) => Project(child.output ++ each.record, each.plan) }
      val made = Union(children, union.byName, union.allowMissingCol)
      val all = made.output.drop(union.output.size)
      // The union's own columns keep their numbers.
      val renamed = union.output.zip(made.output).map { case (old, now) => Alias(now, old.name)(old.exprId) }
      val first = found.head.get._2
      Some(first.copy(plan = Project(renamed ++ all, made), own = all.take(first.own.size), hidden = all.drop(first.own.size)))
    }
  }

  /** The rows that an aggregate leaves out. Where others than the stream's own decide which rows there are, or how many become of one, they are
    * looked for before that: they are rows of the stream, whatever they would have met.
    */
  private def missed(aggregate: Aggregate): Seq[LogicalPlan] = grouped(aggregate).toSeq.flatMap { found =>
    if (!isPlain(aggregate.child, found.window)) before(aggregate.child, found.window)
    else Seq(found.rows.letters(found.window, Filter(found.late, found.rows.plan)))
  }

  private def isPlain(plan: LogicalPlan, window: Attribute): Boolean = plan match {
    case _: DataSourceV2Relation => true
    case Filter(condition, child) => !condition.exists(_.isInstanceOf[PlanExpression[_]]) && isPlain(child, window)
    case Project(_, child) => isPlain(child, window)
    case expand: Expand =>
      val at = expand.output.indexWhere(_.exprId == window.exprId)
      at >= 0 && !expand.projections.exists(_(at).isInstanceOf[Attribute]) && isPlain(expand.child, window)
    case _ => false
  }

  private def before(plan: LogicalPlan, column: Attribute): Seq[LogicalPlan] = made(plan, column).flatMap {
    case (base, time, windows) => carried(alone(base), time).map { found =>
      val window = AttributeReference("window", windows.head.dataType)()
      val each = Expand(windows.map(_ +: found.record), window +: found.record, found.plan)
      val (start, end, at) = (TimeWindows.micros(GetStructField(window, 0)), TimeWindows.micros(GetStructField(window, 1)), TimeWindows.micros(time))
      val inside = And(LessThanOrEqual(start, at), LessThan(at, end))
      found.letters(window, Filter(And(inside, found.late(end)), each))
    }
  }

  /** The plan without conditions in which queries over others stand. */
  private def alone(plan: LogicalPlan): LogicalPlan = plan.transform { case Filter(condition, child) =>
    val kept = conjuncts(condition).filterNot(_.exists(_.isInstanceOf[PlanExpression[_]]))
    kept.reduceOption(And(_, _)).fold(child)(Filter(_, child))
  }

  private def conjuncts(condition: Expression): Seq[Expression] = condition match {
    case And(one, other) => conjuncts(one) ++ conjuncts(other)
    case _ => Seq(condition)
  }

  /** The plan before joins, the time in it, and the windows that a row may be in; for each branch of a union. */
  private def made(plan: LogicalPlan, window: Attribute): Seq[(LogicalPlan, Attribute, Seq[Expression])] = plan match {
    case Project(items, child) => items.find(_.exprId == window.exprId).toSeq.flatMap {
      case Alias(e, _) if TimeWindows.source(e).isDefined => windowsBeside(child, Seq(e))
      case item => below(item).toSeq.flatMap(made(child, _))
    }
    case expand: Expand =>
      val windows = expand.projections.map(_(expand.output.indexWhere(_.exprId == window.exprId)))
      windows.distinct match {
        case Seq(same: Attribute) => made(expand.child, same) // subtotals within a window
        case _ => windowsBeside(expand.child, windows)
      }
    case union: Union => union.children.flatMap(child => made(child, child.output(union.output.indexWhere(_.exprId == window.exprId))))
    case _: Aggregate => Nil
    case _ => plan.children.find(_.outputSet.contains(window)).toSeq.flatMap(made(_, window))
  }

  private def windowsBeside(plan: LogicalPlan, windows: Seq[Expression]): Seq[(LogicalPlan, Attribute, Seq[Expression])] =
    for (column <- windows.flatMap(TimeWindows.source(_)).take(1); (base, time) <- beside(plan, column))
      yield (base, time, windows.map(_.transform { case a: Attribute if a.exprId == column.exprId => time }))

  /** The side of the joins that the column comes from, and the column there. */
  private def beside(plan: LogicalPlan, column: Attribute): Option[(LogicalPlan, Attribute)] =
    if (!plan.exists(_.isInstanceOf[Join])) Some((plan, column))
    else plan match {
      case Project(items, child) => items.find(_.exprId == column.exprId).flatMap(below).flatMap(beside(child, _))
      case _ => plan.children.find(_.outputSet.contains(column)).flatMap(beside(_, column))
    }
}

object Lateness {
  /** Whether the condition is the one that leaves out late rows: no other makes a number of the watermark. */
  def isIn(condition: Expression): Boolean = condition.exists {
    case PreciseTimestampConversion(stamp: Attribute, _, LongType) => stamp.name == Stamp
    case _ => false
  }

  private val Stamp = "_watermark"
  private val Appended = "_appended_at"

  /** Whether the watermark had passed a window's end, and what is allowed beyond it, when the row came. */
  private def passed(end: Expression, stamp: Attribute, allowed: Long): Expression = {
    val last = if (allowed == 0) end else Add(end, Literal(allowed))
    Coalesce(Seq(LessThanOrEqual(last, TimeWindows.micros(stamp)), Literal(false)))
  }

  /** What is kept of late rows. */
  private def letters(
      stream: String, own: Seq[Attribute], hidden: Seq[Attribute], window: Attribute, rows: LogicalPlan, implausible: Option[Expression]): LogicalPlan = {
    def column(name: String): Attribute = hidden.find(_.name == name).get
    val (start, end, stamp) = (GetStructField(window, 0), GetStructField(window, 1), column(Stamp))
    val by = Subtract(TimeWindows.micros(stamp), TimeWindows.micros(end))
    val columns = Seq[(String, Expression)](
      "relation" -> Literal(stream), "partition" -> column("_partition"), "offset" -> column("_offset"),
      "reason" -> implausible.fold[Expression](Literal(Reason))(If(_, Literal(Implausible), Literal(Reason))), "window_start" -> start, "window_end" -> end, "watermark" -> stamp,
      "late_by" -> implausible.fold[Expression](by)(If(_, Literal(null, LongType), by)), "row" -> Leaving.json(own))
    Project(columns.map { case (name, e) => Alias(e, name)() }, rows)
  }
  private val Reason = "the window was over"
  private val Implausible = "implausible"
}
