package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{InlineCTE, PullupCorrelatedPredicates, RewritePredicateSubquery}
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types.LongType
import penstock.kernel.source.Hidden

/** Rows that come too late for an operator with a bound in time are left out of it.
  *
  * The time in the bound is the event time of streams, and a stream's rows have stamps, the watermarks that stood before them. The condition that
  * the window, or the time, was not over then is put where rows enter the operator. It is part of the query from there on: for the engine, which
  * sends what it leaves out elsewhere, and for Spark's batch engine, which gives the same answer.
  *
  * @param eventTimes the event time of each stream that has one, by the stream's name
  * @param allowed for so many microseconds after its time something may still be corrected
  */
final class Lateness(eventTimes: Map[String, String], clocks: Clocks, allowed: Long) {

  /** The query without rows that are late. */
  def left(query: LogicalPlan): LogicalPlan = within(query)(timely)

  /** The query without rows that are late, showing what is complete; with `complete` by stream, what is complete at these times. */
  def finished(query: LogicalPlan, complete: Option[Map[String, Long]]): LogicalPlan = new Finishing(clocks, complete).of(left(query))

  /** What is left out: for each bound, the rows of the streams that are late, once for each window that they miss. */
  def late(query: LogicalPlan): Seq[LogicalPlan] = {
    val found = Seq.newBuilder[LogicalPlan]
    val rows = new LateRows(eventTimes, this)
    within(query) { node =>
      clocks.bounds.of(node).foreach(bound => found ++= rows.of(node.children(bound.side), bound))
      timely(node)
    }
    found.result().distinctBy(_.canonicalized) // a window may be grouped by in several places
  }

  private def timely(node: LogicalPlan): LogicalPlan = clocks.bounds.of(node).foldLeft(node) { (whole, bound) =>
    val child = whole.children(bound.side)
    stamped(child, bound).fold(whole) { found =>
      val kept = Filter(Not(left(bound.clock.last(bound.value), found)), found.plan)
      whole.withNewChildren(whole.children.updated(bound.side, Project(child.output, kept)))
    }
  }

  private[penstock] def stamped(child: LogicalPlan, bound: TimeBound): Option[Stamped] = new Stamping(eventTimes, bound.clock.streams).of(child, bound.value)

  /** Whether a row is left out: it is late, or its time cannot be. */
  private[penstock] def left(last: Expression, rows: Stamped): Expression = Or(rows.implausible, late(last, rows.stamps.values.toSeq))

  /** Whether all watermarks had passed the last moment, and what is allowed beyond it, when the row came. */
  private def late(last: Expression, stamps: Seq[Expression]): Expression = {
    val until = if (allowed == 0) last else Add(last, Literal(allowed, LongType))
    Coalesce(Seq(stamps.map(stamp => LessThanOrEqual(until, TimeWindows.micros(stamp)): Expression).reduce(And(_, _)), Literal(false)))
  }

  /** Changes the query's own operators, the lower ones first; what another view has it takes as it is. */
  private def within(plan: LogicalPlan)(change: LogicalPlan => LogicalPlan): LogicalPlan = plan match {
    case view: View => view
    case _ => change(plan.mapChildren(within(_)(change)).transformExpressionsUp {
      case query: PlanExpression[LogicalPlan @unchecked] => query.withNewPlan(within(query.plan)(change))
    })
  }
}

object Lateness {
  /** Whether a plan only selects rows of a stream, and computes values of each. */
  def selects(plan: LogicalPlan, eventTimes: Map[String, String]): Boolean = plan match {
    case Project(items, child) => items.forall(isPlain) && selects(child, eventTimes)
    case Filter(condition, child) => isPlain(condition) && selects(child, eventTimes)
    case relation: DataSourceV2Relation => eventTimes.contains(relation.options.get("relation"))
    case _ => false
  }
  private def isPlain(e: Expression): Boolean = e.deterministic && !e.exists {
    case _: PlanExpression[_] | _: PythonFuncExpression => true
    case _ => false
  }

  /** The query without what is only a name: common tables, aliases, views that are `open`; with joins that have their conditions, also those that are written as
    * conditions. */
  private[penstock] def plain(query: LogicalPlan, eventTimes: Map[String, String], open: Set[String]): LogicalPlan = {
    val named = EliminateSubqueryAliases(InlineCTE(alwaysInline = true)(query)).transformUpWithSubqueries {
      case alias: SubqueryAlias => alias.child // of queries in expressions too
      case view: View if open(view.desc.identifier.table) => view.child
    }
    val timed = named.collectWithSubqueries { case relation: DataSourceV2Relation => relation.options.get("relation") }.exists(eventTimes.contains)
    val asked = timed && named.exists(_.expressions.exists(_.exists { case _: Exists | _: InSubquery => true; case _ => false }))
    Session.shielded(if (asked) RewritePredicateSubquery(PullupCorrelatedPredicates(named)) else named).transformUp {
      case Filter(condition, join @ Join(_, _, Inner, on, _)) if condition.deterministic && !condition.exists(_.isInstanceOf[PlanExpression[_]]) =>
        compared(join.copy(condition = Some((on.toSeq :+ condition).reduce(And(_, _)))))
      case join: Join => compared(join)
    }
  }

  private def compared(join: Join): Join = join.copy(condition = join.condition.map(Distance.comparisons(_).reduce(And(_, _))))

  /** The same condition, in which the times of rows are looked at before their windows: a row whose time the watermark has not passed is in time for all of them. */
  def quickly(condition: Expression): Expression = JoinPlan.conjuncts(condition).map {
    case not @ Not(late) if isIn(late) => sooner(late).fold[Expression](not)(passed => Or(Not(passed), not))
    case late if isIn(late) => sooner(late).fold(late)(passed => And(passed, late))
    case other => other
  }.reduce(And(_, _))

  /** What holds for every row that is late, and more: its time instead of the end of its window. */
  private def sooner(late: Expression): Option[Expression] = {
    val passed = late.transform {
      case LessThanOrEqual(PreciseTimestampConversion(GetStructField(TimeWindows.Made(time, _), 1, _), _, LongType), stamp) => LessThan(TimeWindows.micros(time), stamp)
    }
    Option.when(passed != late)(passed)
  }

  /** Whether the condition is the one that leaves out late rows: no other makes a number of the watermark. */
  def isIn(condition: Expression): Boolean = condition.exists {
    case PreciseTimestampConversion(stamp: Attribute, _, LongType) => stamp.name.startsWith(Hidden.Watermark)
    case _ => false
  }
}
