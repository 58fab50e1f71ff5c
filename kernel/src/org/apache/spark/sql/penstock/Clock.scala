package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.LongType

/** How the value of a column tells a time after which it is over. */
sealed abstract class Shape
object Shape {
  /** An event's time: over when the watermark is beyond it. */
  case object Time extends Shape
  /** A struct of a start and an end; `length` in microseconds, -1 where windows differ in it. */
  case class Window(length: Long) extends Shape
  /** The start of a window of that length. */
  case class Start(length: Long) extends Shape
  /** The end of a window. */
  case object End extends Shape
  /** A session as it is for one row: a struct of its time and the end of its gap. */
  case object Gap extends Shape
}

/** What tells when a value is complete: the watermarks of streams, the least of them.
  *
  * @param delay so many microseconds longer rows may come, or change
  * @param complete whether nothing else changes what has the value once it is over; over a join with a table something may
  * @param timely whether rows that are late are left out beneath: see [[Lateness]]
  */
final case class Clock(streams: Set[String], shape: Shape, delay: Long, complete: Boolean, timely: Boolean) {
  def closes: Boolean = complete && timely
  def isWindow: Boolean = shape match {
    case Shape.Window(_) | Shape.Start(_) | Shape.End => true
    case _ => false
  }

  /** When a value is over, in microseconds. */
  def over(value: Expression): Expression = TimeBounds.later(reached(value), more)

  /** When rows with that value are late, in microseconds: how long others take on their way does not count. */
  def last(value: Expression): Expression = TimeBounds.later(reached(value), more - delay)

  private def reached(value: Expression): Expression = shape match {
    case Shape.Window(_) => TimeWindows.micros(GetStructField(value, 1))
    case Shape.Gap => TimeWindows.micros(GetStructField(value, 0))
    case _ => TimeWindows.micros(value)
  }

  /** How many microseconds after what the value has it is over. */
  def more: Long = delay + (shape match {
    case Shape.Time | Shape.Gap => 1
    case Shape.Start(length) => length
    case _ => 0
  })

  /** How far the time of a row may be from the end of its window; None where that is not known. */
  def length: Option[Long] = shape match {
    case Shape.Time => Some(0L)
    case Shape.Start(length) => Some(length)
    case Shape.Window(length) if length >= 0 => Some(length)
    case _ => None
  }

  /** Of two inputs that meet. */
  def and(other: Clock): Clock =
    Clock(streams ++ other.streams, shape, math.max(delay, other.delay), complete && other.complete, timely && other.timely)
}
