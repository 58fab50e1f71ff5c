package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Join, LogicalPlan, Window, WindowGroupLimit}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.util.IntervalStringStyles.ANSI_STYLE
import org.apache.spark.sql.catalyst.util.IntervalUtils
import org.apache.spark.sql.types.DayTimeIntervalType.{DAY, SECOND}
import penstock.kernel.engine.{Ages, Dating, Timing}

/** How the state of an operator is freed, and when its answers are complete.
  *
  * @param bounds one for each input
  * @param allowed so many microseconds what is over may still be corrected
  * @param waits whether answers are shown only once they are complete
  */
final class Closing(node: LogicalPlan, val bounds: Seq[TimeBound], allowed: Long, waits: Boolean) {
  /** The streams whose watermarks count, each with a clock of its own. */
  val streams: Array[String] = bounds.flatMap(_.clock.streams).distinct.sorted.toArray
  private val first = bounds.head

  /** The operator's own watermark is the least of theirs, less so many microseconds: so much longer rows may come, or change, on their way to it. */
  val delay: Long = bounds.map(_.clock.delay).max

  /** How windows in the key close. */
  val timing: Option[Timing] = Option.when(first.keyed) {
    val struct = first.clock.shape match { case Shape.Window(_) => true; case _ => false }
    Timing(position, struct, first.clock.more max bounds.last.clock.more, streams.length, allowed, waits)
  }

  /** How keys without windows are looked at again. */
  val dating: Option[Dating] = Option.when(!first.keyed)(Dating(streams.length, first.clock.delay, allowed, waits))

  /** Of the rows of one side, whose time stands at `column` in the row, `more` than it is. */
  def ages(side: Int, column: Expression => Int, more: Long = 0): Option[Ages] = bounds.find(bound => bound.side == side && !bound.keyed).flatMap { bound =>
    val at = column(bound.value)
    val over = node match {
      case _: Join => bound.behind + 1
      case _ => bound.clock.more + bound.ahead
    }
    val kept = node match {
      case _: Join => over
      case _ => bound.clock.more + bound.behind
    }
    Option.when(at >= 0)(Ages(at, over - more, kept + allowed - more))
  }

  /** What is kept how long, for people. */
  def text: String = {
    val watermark = s"the watermark of ${streams.mkString(" and ")}"
    val ended = s"when $watermark passes their end${Closing.by(Seq(delay + allowed))}"
    node match {
      case _: Session => s"bounded by the open sessions: freed $ended"
      case Aggregate(_, _, _: Session, _) => s"bounded by the open sessions: freed $ended"
      case _: Held => s"bounded by the rows that wait: shown, and freed, when $watermark passes their end"
      case _ if first.keyed => s"bounded by the open windows: freed $ended"
      case _: Join => s"bounded by a range of time: rows are freed when $watermark passes their time${Closing.by(bounds.map(_.behind + allowed))}"
      case _ =>
        s"bounded by a range of time: rows are freed when $watermark passes their time${Closing.by(bounds.map(bound => bound.behind + bound.clock.delay + allowed))}"
    }
  }

  /** Where the window stands in the key. */
  private def position: Int = node match {
    case aggregate: Aggregate => at(aggregate.groupingExpressions)
    case window: Window => at(window.partitionSpec)
    case limit: WindowGroupLimit => at(limit.partitionSpec)
    case ExtractEquiJoinKeys(_, lefts, _, _, _, _, _, _) => at(lefts)
    case _ => 0
  }
  private def at(keys: Seq[Expression]): Int = keys.indexWhere(_.semanticEquals(first.value))
}

object Closing {
  private def by(micros: Seq[Long]): String = micros.map(span).distinct.filter(_.nonEmpty).reduceOption((a, b) => s"$a or $b").fold("")(" by " + _)

  /** So many microseconds, for people. */
  def span(micros: Long): String =
    if (micros <= 0) "" else IntervalUtils.toDayTimeIntervalString(micros, ANSI_STYLE, DAY, SECOND).replaceAll("(INTERVAL '| DAY TO SECOND|')", "")
}
