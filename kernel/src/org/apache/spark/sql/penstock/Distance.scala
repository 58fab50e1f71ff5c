package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.DateTimeConstants.MICROS_PER_DAY
import org.apache.spark.sql.types._

/** How far apart two expressions always are: both are the same one plus constants. */
object Distance {

  /** By how much `b` is more than `a`, in units of their type and as its arithmetic counts: after the largest value comes the least. None where
    * that is not known.
    */
  def between(a: Expression, b: Expression): Option[Long] =
    if (a.semanticEquals(b)) Some(0L)
    else {
      val (mine, begin) = parted(a)
      val (theirs, end) = parted(b)
      if (a.dataType != b.dataType || !mine.semanticEquals(theirs)) None
      else a.dataType match {
        case LongType | TimestampType | TimestampNTZType => Some(end - begin)
        case IntegerType | DateType => Some((end - begin).toInt.toLong)
        case _ => None
      }
    }

  /** An expression without the constants that are added to it, and their sum. */
  def parted(e: Expression): (Expression, Long) = e match {
    case Add(inner, Whole(n), _) => plus(inner, n)
    case Add(Whole(n), inner, _) => plus(inner, n)
    case Subtract(inner, Whole(n), _) => plus(inner, -n)
    case DateAdd(inner, Whole(n)) => plus(inner, n)
    case DateSub(inner, Whole(n)) => plus(inner, -n)
    // In zones that change their clocks a day is not always as long.
    case moved @ TimestampAddInterval(inner, Span(micros), _)
        if math.abs(micros) < MICROS_PER_DAY || moved.zoneIdForType(inner.dataType).getRules.isFixedOffset => plus(inner, micros)
    case replaced: RuntimeReplaceable => parted(replaced.replacement)
    case cast: Cast if cast.child.dataType == cast.dataType => parted(cast.child)
    case other => (other, 0L)
  }

  /** The comparisons of a condition one by one, of two times where it compares their difference. */
  def comparisons(condition: Expression): Seq[Expression] = condition match {
    case And(a, b) => comparisons(a) ++ comparisons(b)
    case between: Between if between.deterministic => comparisons(between.replacement)
    case With(inside, shared) => comparisons(inside.transform { case ref: CommonExpressionRef => shared.find(_.id == ref.id).get.child })
    case comparison: BinaryComparison if !comparison.isInstanceOf[EqualNullSafe] => Seq((comparison.left, comparison.right) match {
        case (Difference(a, b), Span(micros)) => comparison.withNewChildren(Seq(a, moved(b, micros)))
        case (Span(micros), Difference(a, b)) => comparison.withNewChildren(Seq(moved(b, micros), a))
        case _ => comparison
      })
    case other => Seq(other)
  }

  private def moved(time: Expression, micros: Long): Expression = TimestampAddInterval(time, Literal(micros, DayTimeIntervalType()), Some("UTC"))

  /** The difference of two times; where clocks are changed it is not how far they are apart. */
  private object Difference {
    def unapply(e: Expression): Option[(Expression, Expression)] = e match {
      case between @ SubtractTimestamps(a, b, false, _)
          if a.dataType == b.dataType && (a.dataType == TimestampNTZType || between.zoneId.getRules.isFixedOffset) => Some((a, b))
      case _ => None
    }
  }

  private def plus(inner: Expression, n: Long): (Expression, Long) = {
    val (base, sum) = parted(inner)
    (base, sum + n)
  }

  private object Span {
    def unapply(e: Expression): Option[Long] = e.dataType match {
      case _: DayTimeIntervalType if e.foldable => Option(e.eval()).map(_.asInstanceOf[Long])
      case _ => None
    }
  }

  private object Whole {
    def unapply(e: Expression): Option[Long] = e match {
      case Literal(n: Long, LongType) => Some(n)
      case Literal(n: Int, IntegerType) => Some(n.toLong)
      case _ => None
    }
  }
}
