package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.LeftOuter
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.{LongType, MetadataBuilder}
import penstock.kernel.source.Hidden

/** Which rows of a stream, or of a table's history, count for which rows of an as-of join, as a part of the query.
  *
  * A version is never late. But the rows that came before it may be complete by then: it counts for those of them whose time is not before its stamp,
  * the watermark that stood before it, and for all that come after it; looking forward, where the time by which the version may be later is not. Of versions with the same time the one that stands later in the log is taken,
  * or looking forward the earlier one. A deleted version is the nearest one like any other, and then there is no partner.
  *
  * @param streams the event time of each stream that has one, by the stream's name
  * @param histories those of them that are histories of tables
  * @param timeless those that no watermark of their own holds for: rows that wait until they are complete do not wait for them, but for their own
  */
final class Versions(streams: Map[String, String], histories: Set[String], timeless: Set[String]) {
  private val records = new Stamping(streams, Set.empty)

  def apply(query: LogicalPlan): LogicalPlan = if (Versions.joins(query)) within(query) else query

  /** The query's own joins; what another view has it takes as it is. */
  private def within(plan: LogicalPlan): LogicalPlan = plan match {
    case view: View => view
    case _ =>
      val below = plan.mapChildren(within).transformExpressionsUp {
        case query: PlanExpression[LogicalPlan @unchecked] => query.withNewPlan(within(query.plan))
      }
      below match {
        case join: AsOfJoin => versioned(join).getOrElse(join)
        case other => other
      }
  }

  private def versioned(join: AsOfJoin): Option[LogicalPlan] = for (times <- AsOfTimes.of(join); versions <- carried(join.right, times.right)) yield {
    val rows = times.reach.flatMap(_ => carried(join.left, times.left))
    val counts = rows.map { each =>
      val stamp = versions.stamp(if (timeless(versions.stream)) each.stream else versions.stream)
      val last = TimeBounds.later(TimeWindows.micros(times.left), times.reach.get)
      Or(Or(IsNull(stamp), GreaterThan(each.place, versions.place)), GreaterThanOrEqual(last, TimeWindows.micros(stamp))): Expression
    }
    val made = join.copy(left = rows.fold(join.left)(_.plan), right = versions.plan, condition = (join.condition ++ counts).reduceOption(And(_, _)))
    val marked = if (histories(versions.stream)) versions.all.find(_.name == "_deleted").orElse(versions.all.find(_.name == Versions.Deleted)) else None
    marked.fold(Project(join.output, AsOfTimes.tied(made, Seq(versions.place))): LogicalPlan)(present(join, AsOfTimes.tied(made, Seq(versions.place)), _))
  }

  private def carried(plan: LogicalPlan, time: Expression): Option[Carried] = time match {
    case column: Attribute => records.of(plan, column).flatMap(found => found.record.map(new Carried(found.plan, _)))
    case _ => None
  }

  /** A side whose rows have their records behind them. */
  private final class Carried(val plan: LogicalPlan, record: Record) {
    val stream: String = record.stream
    val all: Seq[Attribute] = record.all
    def stamp(of: String): Attribute = record.column(if (of == stream) Hidden.Watermark else Hidden.watermarkOf(of))
    def place: Attribute = record.column(Hidden.Place)
  }

  /** Rows whose partner is deleted have none. The output is that of `asked`. */
  private def present(asked: AsOfJoin, join: AsOfJoin, deleted: Attribute): LogicalPlan =
    if (join.joinType != LeftOuter) Project(asked.output, Filter(Not(deleted), join))
    else {
      val theirs = asked.right.outputSet
      // Marked: Catalyst takes an alias away that is only the same name again, and then a column would be made of itself.
      val renamed = AttributeMap(join.right.output.filter(theirs.contains).map(a => a -> Alias(a, a.name)(explicitMetadata = Some(Versions.Found))))
      def now(a: Attribute): Attribute = renamed.get(a).fold(a)(_.toAttribute)
      val right = Project(join.right.output.map(a => renamed.getOrElse(a, a)), join.right)
      val made = join.copy(right = right).transformExpressions { case a: Attribute if renamed.contains(a) => now(a) }
      val gone = Coalesce(Seq(now(deleted).withNullability(true), Literal(false)))
      val known = asked.right.output.map(a => Alias(If(gone, Literal(null, a.dataType), now(a).withNullability(true)), a.name)(a.exprId, a.qualifier))
      Project(asked.left.output ++ known, made)
    }
}

object Versions {
  /** The column of a history that says whether a version is a deletion. */
  val Deleted = "deleted"

  private val Found = new MetadataBuilder().putBoolean("found", value = true).build()

  def joins(query: LogicalPlan): Boolean = query.collectWithSubqueries { case join: AsOfJoin => join }.nonEmpty

  /** The stamp in a condition that says whether a version counts; None if it says something else. */
  def stampIn(condition: Expression): Option[Attribute] =
    if (Lateness.isIn(condition)) condition.collectFirst { case PreciseTimestampConversion(stamp: Attribute, _, LongType) if stamp.name.startsWith(Hidden.Watermark) => stamp }
    else None
}
