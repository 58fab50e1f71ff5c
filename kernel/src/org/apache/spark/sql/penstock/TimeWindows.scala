package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Expand, Filter, LogicalPlan, Project}
import org.apache.spark.sql.types.{DataType, LongType, StructType, TimestampNTZType, TimestampType}

/** Windows of time, as Catalyst writes them: a struct of a start, and an end that is a fixed time later, both made from one time. */
object TimeWindows {
  def isWindow(of: DataType): Boolean = of match {
    case StructType(Array(start, end)) => start.name == "start" && end.name == "end" && isTime(start.dataType) && start.dataType == end.dataType
    case _ => false
  }
  def isTime(of: DataType): Boolean = of == TimestampType || of == TimestampNTZType

  /** A window that is made from a time: the time, and how long it is. */
  object Made {
    def unapply(e: Expression): Option[(Expression, Long)] = bare(e) match {
      case struct @ CreateNamedStruct(Seq(_, start, _, end)) if isWindow(struct.dataType) => (bare(start), bare(end)) match {
        case (Starting(time, _), Ending(same, length)) if same.semanticEquals(time) => Some((time, length))
        case _ => None
      }
      case _ => None
    }
  }

  /** That the time from which a window is made lies in it. */
  object Within {
    def unapply(e: Expression): Option[Expression] = e match {
      case struct @ CreateNamedStruct(Seq(_, start, _, end)) => Made.unapply(struct).map { case (time, _) => isWithin(start, time, end) }
      case _ => None
    }
  }

  def isWithin(start: Expression, time: Expression, end: Expression): Expression =
    And(LessThanOrEqual(micros(start), micros(time)), LessThan(micros(time), micros(end)))

  /** The session of one row: from its time to the end of its gap. */
  object Gap {
    def unapply(e: Expression): Option[Expression] = bare(e) match {
      case struct @ CreateNamedStruct(Seq(_, start, _, _)) if isWindow(struct.dataType) => bare(start) match {
        case PreciseTimestampConversion(PreciseTimestampConversion(time, _, LongType), LongType, _) => Some(bare(time))
        case time if isTime(time.dataType) && !time.isInstanceOf[PreciseTimestampConversion] => Some(time)
        case _ => None
      }
      case _ => None
    }
  }

  /** The start of a window: the time in it, and the distance between windows. */
  object Starting {
    def unapply(e: Expression): Option[(Expression, Long)] = bare(e) match {
      case PreciseTimestampConversion(number, LongType, _) => from(number)
      case _ => None
    }
  }

  /** The end of a window: the time in it, and how long it is. */
  object Ending {
    def unapply(e: Expression): Option[(Expression, Long)] = bare(e) match {
      case PreciseTimestampConversion(Add(start, Literal(length: Long, LongType), _), LongType, _) => from(start).map { case (time, _) => (time, length) }
      case _ => None
    }
  }

  /** The last moment of a window. */
  object LastMoment {
    def unapply(e: Expression): Option[Expression] = bare(e) match {
      case PreciseTimestampConversion(Subtract(PreciseTimestampConversion(end, _, LongType), Literal(1L, LongType), _), LongType, _) => bare(end) match {
        case GetStructField(window, 1, _) if isWindow(window.dataType) => Some(bare(window))
        case _ => None
      }
      case _ => None
    }
  }

  /** A number from which a window starts: a time less what is left when it is divided by the distance of windows. */
  private def from(number: Expression): Option[(Expression, Long)] = {
    val distances = number.collect { case Remainder(_, Literal(slide: Long, LongType), _) => slide }.distinct
    times(number).distinct match {
      case Seq(time) if distances.size == 1 => Some((time, distances.head))
      case _ => None
    }
  }

  /** The times that a number is made from. */
  private def times(number: Expression): Seq[Expression] = number match {
    case PreciseTimestampConversion(time, _, LongType) => Seq(bare(time))
    case _ => number.children.flatMap(times)
  }

  /** Whether the column is a window of time, so that its start tells its end. */
  def isMadeIn(plan: LogicalPlan, column: Attribute): Boolean = plan match {
    case Filter(_, child) => isMadeIn(child, column)
    case Project(items, child) => items.find(_.exprId == column.exprId).exists {
      case same: Attribute => isMadeIn(child, same)
      case Alias(same: Attribute, _) => isMadeIn(child, same)
      case Made(_, _) => true
      case _ => false
    }
    case expand: Expand =>
      val at = expand.output.indexWhere(_.exprId == column.exprId)
      at >= 0 && expand.projections.forall(each => Made.unapply(each(at)).isDefined)
    case _ => false
  }

  /** A time as a number of microseconds. */
  def micros(time: Expression): Expression = PreciseTimestampConversion(time, time.dataType, LongType)

  def bare(e: Expression): Expression = e match {
    case KnownNullable(inside) => bare(inside)
    case Alias(inside, _) => bare(inside)
    case _ => e
  }
}
