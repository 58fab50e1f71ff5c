package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types.{LongType, TimestampType}
import penstock.kernel.source.Hidden
import scala.collection.mutable

/** The rows of streams that an operator with a bound in time leaves out, once for each window that they miss. */
final class LateRows(eventTimes: Map[String, String], lateness: Lateness) {

  /** Where others than the stream's own decide which rows there are, or how many become of one, they are looked for before that: they are rows of the
    * stream, whatever they would have met. Rows that are left out and cannot be told are refused.
    */
  def of(input: LogicalPlan, bound: TimeBound): Seq[LogicalPlan] = {
    val own = without(input, _.isInstanceOf[OuterReference])
    if (isKnown(own, bound)) Nil
    else {
      val late = found(own, bound)
      if (late.isEmpty && lateness.stamped(input, bound).isDefined)
        throw new Unsupported(bound.value.sql, "nothing tells which rows of a stream come too late for it")
      late
    }
  }

  /** A time that is made from a stream's, whose late rows by the watermarks of `streams` have been looked for, under conditions, for its windows; without
    * windows, for all that has the time.
    */
  private case class Known(source: Attribute, at: Expression, windows: Seq[Expression], streams: Set[String], under: Set[Expression]) {
    /** Whether what is late for the other is late here. Nothing that is made from a stream's time is over before it. */
    def covers(other: Known): Boolean = source.exprId == other.source.exprId && streams.subsetOf(other.streams) && under.subsetOf(other.under) &&
      (if (windows.isEmpty) at.isInstanceOf[Attribute] || at == other.at else at == other.at && windows == other.windows)
  }
  private val known = mutable.ArrayBuffer.empty[Known]

  /** Whether an operator below has left the rows out already, for the same windows. */
  private def isKnown(input: LogicalPlan, bound: TimeBound): Boolean = {
    val under = input.collect { case Filter(condition, _) => JoinPlan.conjuncts(condition) }.flatten.filterNot(Lateness.isIn).map(_.canonicalized).toSet
    val asked = sources(input, bound).map { case (_, at, windows) =>
      Known(at.references.head, at.canonicalized, windows.map(_.canonicalized), bound.clock.streams, under)
    }
    val before = asked.nonEmpty && asked.forall(each => known.exists(_.covers(each)))
    known ++= asked
    before
  }

  private def found(input: LogicalPlan, bound: TimeBound): Seq[LogicalPlan] =
    if (isPlain(input, bound.value)) lateness.stamped(input, bound).toSeq.flatMap { found =>
      val late = Filter(lateness.left(bound.clock.last(bound.value), found), found.plan)
      found.record.map(letters(_, window(bound), bound, found, late))
    }
    else before(input, bound)

  /** The window that is missed, as far as a value tells: its start and its end. */
  private def window(bound: TimeBound): (Expression, Expression) = bound.clock.shape match {
    case Shape.Window(_) => (GetStructField(bound.value, 0), GetStructField(bound.value, 1))
    case Shape.Start(length) => (bound.value, LateRows.time(Add(TimeWindows.micros(bound.value), Literal(length, LongType))))
    case Shape.End => (LateRows.None, bound.value)
    case _ => (LateRows.None, LateRows.None)
  }

  private def isPlain(plan: LogicalPlan, value: Expression): Boolean = plan match {
    case _: DataSourceV2Relation => true
    case Filter(condition, child) => !condition.exists(_.isInstanceOf[PlanExpression[_]]) && isPlain(child, value)
    case Project(_, child) => isPlain(child, value)
    case expand: Expand =>
      val at = expand.output.indexWhere(each => value.references.contains(each))
      at >= 0 && !expand.projections.exists(_(at).isInstanceOf[Attribute]) && isPlain(expand.child, value)
    case _ => false
  }

  private def before(input: LogicalPlan, bound: TimeBound): Seq[LogicalPlan] = sources(input, bound).flatMap { case (base, at, windows) =>
    new Stamping(eventTimes, bound.clock.streams).of(without(base, _.isInstanceOf[PlanExpression[_]]), at).flatMap(found => found.record.map { record =>
      // A time in a window that is not the row's own is no time of it.
      val within = found.over(plan => at.collect { case TimeWindows.Within(inside) => inside }.reduceOption(And(_, _)).fold(plan)(Filter(_, plan)))
      if (windows.isEmpty) {
        val late = lateness.left(Add(TimeWindows.micros(at), Literal(1L, LongType)), within)
        letters(record, (LateRows.None, LateRows.None), bound.copy(value = at, clock = bound.clock.copy(shape = Shape.Time)), within, Filter(late, within.plan))
      } else {
        val window = AttributeReference("window", windows.head.dataType)()
        val columns = (at.references.toSeq ++ within.more(Nil)).distinctBy(_.exprId)
        val each = Expand(windows.map(_ +: columns), window +: columns, within.plan)
        val (start, end) = (GetStructField(window, 0), GetStructField(window, 1))
        val missed = Filter(And(TimeWindows.isWithin(start, at, end), lateness.left(TimeWindows.micros(end), within)), each)
        letters(record, (start, end), bound.copy(value = window, clock = bound.clock.copy(shape = Shape.Window(-1), delay = 0)), within, missed)
      }
    })
  }

  /** The plan without conditions in which such expressions stand: queries over others, columns of the query outside. */
  private def without(plan: LogicalPlan, others: Expression => Boolean): LogicalPlan = plan.transform { case Filter(condition, child) =>
    JoinPlan.conjuncts(condition).filterNot(_.exists(others)).reduceOption(And(_, _)).fold(child)(Filter(_, child))
  }

  private def sources(input: LogicalPlan, bound: TimeBound): Seq[(LogicalPlan, Expression, Seq[Expression])] =
    if (bound.clock.shape == Shape.Time) beside(input, bound.value).map { case (base, at) => (base, at, Nil) } else made(input, bound.value)

  /** The plan before joins, the time in it, and the windows that a row may be in; for each branch of a union. */
  private def made(plan: LogicalPlan, value: Expression): Seq[(LogicalPlan, Expression, Seq[Expression])] = TimeWindows.bare(value) match {
    case column: Attribute => madeIn(plan, column)
    case GetStructField(inside, _, _) => made(plan, inside)
    case TimeWindows.Made(time, _) => beside(plan, time).map { case (base, at) => (base, at, Seq(moved(value, time, at))) }
    case TimeWindows.Gap(time) => beside(plan, time).map { case (base, at) => (base, at, Nil) }
    case _ => Nil // `of` refuses it
  }

  private def madeIn(plan: LogicalPlan, column: Attribute): Seq[(LogicalPlan, Expression, Seq[Expression])] = plan match {
    case Project(items, child) => items.find(_.exprId == column.exprId).toSeq.flatMap(item => made(child, TimeWindows.bare(item)))
    case expand: Expand =>
      val windows = expand.projections.map(_(expand.output.indexWhere(_.exprId == column.exprId)))
      windows.distinct match {
        case Seq(same: Attribute) => made(expand.child, same) // subtotals within a window
        case _ => windows.collectFirst { case TimeWindows.Made(time, _) => time }.toSeq.flatMap { time =>
          beside(expand.child, time).map { case (base, at) => (base, at, windows.map(moved(_, time, at))) }
        }
      }
    case union: Union => union.children.flatMap(child => madeIn(child, child.output(union.output.indexWhere(_.exprId == column.exprId))))
    case _: Aggregate => Nil
    case _ => plan.children.find(_.outputSet.contains(column)).toSeq.flatMap(madeIn(_, column))
  }

  private def moved(window: Expression, from: Expression, to: Expression): Expression =
    TimeWindows.bare(window).transform { case e if e.semanticEquals(from) => to }

  /** The side of the joins that a time comes from, and what it is there; for each branch of a union, and each window that a row may be in. */
  private def beside(plan: LogicalPlan, time: Expression): Seq[(LogicalPlan, Expression)] = (plan, time.references.toSeq) match {
    case (_, Seq(_)) if !plan.exists({ case _: Join | _: AsOfJoin | _: Union => true; case _ => false }) => Seq((plan, time))
    case (Project(items, child), Seq(column)) => items.find(_.exprId == column.exprId).toSeq.flatMap(item => beside(child, put(time, column, item)))
    case (union: Union, Seq(column)) =>
      val at = union.output.indexWhere(_.exprId == column.exprId)
      union.children.flatMap(child => beside(child, put(time, column, child.output(at))))
    case (expand: Expand, Seq(column)) =>
      val at = expand.output.indexWhere(_.exprId == column.exprId)
      expand.projections.map(each => put(time, column, each(at))).distinctBy(_.canonicalized).flatMap(beside(expand.child, _))
    case (_, Seq(column)) => plan.children.find(_.outputSet.contains(column)).toSeq.flatMap(beside(_, time))
    case _ => Nil
  }

  private def put(time: Expression, column: Attribute, value: Expression): Expression =
    TimeWindows.bare(time.transform { case same: Attribute if same.exprId == column.exprId => TimeWindows.bare(value) })

  /** What is kept of late rows. */
  private def letters(record: Record, window: (Expression, Expression), bound: TimeBound, of: Stamped, rows: LogicalPlan): LogicalPlan = {
    val stamps = of.stamps.values.toSeq
    val watermark = if (stamps.size == 1) stamps.head else Least(stamps)
    val last = bound.clock.shape match {
      case Shape.Time | Shape.Gap => Subtract(bound.clock.last(bound.value), Literal(1L, LongType))
      case _ => bound.clock.last(bound.value)
    }
    val columns = Seq[(String, Expression)](
      "relation" -> Literal(record.stream), "partition" -> record.column(Hidden.Partition), "offset" -> record.column(Hidden.Offset),
      "reason" -> If(of.implausible, Literal("implausible"), Literal(if (bound.clock.isWindow) "the window was over" else "its time was over")),
      "window_start" -> window._1, "window_end" -> window._2, "watermark" -> watermark,
      "late_by" -> If(of.implausible, Literal(null, LongType), Subtract(TimeWindows.micros(watermark), last)), "row" -> Leaving.json(record.own))
    Project(columns.map { case (name, e) => Alias(e, name)() }, rows)
  }
}

object LateRows {
  private val None = Literal(null, TimestampType)
  private def time(micros: Expression): Expression = PreciseTimestampConversion(micros, LongType, TimestampType)

  /** What is kept of records of a relation that came too late to correct rows: `found` are the partition, the offset, the record as JSON, the watermark,
    * and when the first of those rows was over.
    */
  def beyond(relation: String, found: Seq[Attribute], rows: LogicalPlan): LogicalPlan = {
    val Seq(partition, offset, row, watermark, over) = found
    val columns = Seq[(String, Expression)](
      "relation" -> Literal(relation), "partition" -> partition, "offset" -> offset, "reason" -> Literal("beyond retain"),
      "window_start" -> None, "window_end" -> None, "watermark" -> time(watermark),
      "late_by" -> Add(Subtract(watermark, over), Literal(1L)), "row" -> row)
    Project(columns.map { case (name, e) => Alias(e, name)() }, rows)
  }
}
