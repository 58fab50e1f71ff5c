package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Expand, Filter, LogicalPlan, Project}
import org.apache.spark.sql.types.{DataType, LongType, StructType, TimestampNTZType, TimestampType}

/** Windows of time, as Catalyst writes them: a struct of a start, and an end that is a fixed time later, both made from one column. */
object TimeWindows {
  def isWindow(of: DataType): Boolean = of match {
    case StructType(Array(start, end)) => start.name == "start" && end.name == "end" && isTime(start.dataType) && start.dataType == end.dataType
    case _ => false
  }
  private def isTime(of: DataType): Boolean = of == TimestampType || of == TimestampNTZType

  /** The column whose time decides about `e`: the time in a window, or the window whose last moment `e` is. */
  def source(e: Expression): Option[Attribute] = bare(e) match {
    case CreateNamedStruct(Seq(_, start, _, end)) if isWindow(bare(e).dataType) => (number(start), number(end)) match {
      case (Some(from), Some(Add(same, Literal(_: Long, LongType), _)))
          if same.semanticEquals(from) && from.references.size == 1 && times(from).forall(isColumn) =>
        Some(from.references.head.toAttribute)
      case _ => None
    }
    case PreciseTimestampConversion(Subtract(PreciseTimestampConversion(end: GetStructField, _, LongType), Literal(1L, LongType), _), LongType, _) =>
      bare(end.child) match {
        case window: Attribute if end.ordinal == 1 && isWindow(window.dataType) => Some(window)
        case _ => None
      }
    case _ => None
  }

  /** Whether the column is a window of time, so that its start tells its end. */
  def isMadeIn(plan: LogicalPlan, column: Attribute): Boolean = plan match {
    case Filter(_, child) => isMadeIn(child, column)
    case Project(items, child) => items.find(_.exprId == column.exprId).exists {
      case same: Attribute => isMadeIn(child, same)
      case Alias(same: Attribute, _) => isMadeIn(child, same)
      case made => source(made).isDefined
    }
    case expand: Expand =>
      val at = expand.output.indexWhere(_.exprId == column.exprId)
      at >= 0 && expand.projections.forall(each => source(each(at)).isDefined)
    case _ => false
  }

  /** A time as a number of microseconds. */
  def micros(time: Expression): Expression = PreciseTimestampConversion(time, time.dataType, LongType)

  /** The times that a number is made from. */
  private def times(number: Expression): Seq[Expression] = number match {
    case PreciseTimestampConversion(time, _, LongType) => Seq(bare(time))
    case _ => number.children.flatMap(times)
  }

  /** Whether it is a column, or the last moment of a window: a time that is computed, an hour earlier say, is not the event time. */
  private def isColumn(time: Expression): Boolean = time.isInstanceOf[Attribute] || source(time).isDefined

  private def number(time: Expression): Option[Expression] = bare(time) match {
    case PreciseTimestampConversion(inside, LongType, _) => Some(inside)
    case _ => None
  }

  private def bare(e: Expression): Expression = e match {
    case KnownNullable(inside) => bare(inside)
    case Alias(inside, _) => bare(inside)
    case _ => e
  }
}
