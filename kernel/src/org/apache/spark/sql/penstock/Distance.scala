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
