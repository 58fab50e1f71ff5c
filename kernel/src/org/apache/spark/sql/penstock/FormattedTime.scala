package org.apache.spark.sql.penstock

import java.time.{DateTimeException, Instant, ZonedDateTime}
import java.time.temporal.ChronoUnit
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, DateFormatClass, Expression, Literal, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.internal.{LegacyBehaviorPolicy, SQLConf}
import org.apache.spark.sql.types.{DataType, TimestampType}
import org.apache.spark.unsafe.types.UTF8String

/** `date_format` by a pattern that shows nothing smaller than `unit`: all times of a day, or of a minute, have the same text, which is kept until
  * a time of another one comes. Where clocks change, every text is made anew.
  */
case class FormattedTime(format: DateFormatClass, unit: ChronoUnit) extends UnaryExpression {
  @transient private lazy val formatted = format.withNewChildren(Seq(BoundReference(0, TimestampType, nullable = false), format.right))
  @transient private var from = 0L
  @transient private var until = 0L
  @transient private var last: UTF8String = _

  override def child: Expression = format.left
  override def dataType: DataType = format.dataType
  override def nullIntolerant: Boolean = true
  override def prettyName: String = format.prettyName
  override protected def nullSafeEval(micros: Any): Any = text(micros.asInstanceOf[Long])
  override protected def doGenCode(context: CodegenContext, code: ExprCode): ExprCode = {
    val mine = context.addReferenceObj("formattedTime", this, classOf[FormattedTime].getName)
    nullSafeCodeGen(context, code, micros => s"${code.value} = $mine.text($micros);")
  }
  override protected def withNewChildInternal(newChild: Expression): FormattedTime =
    copy(format = format.withNewChildren(Seq(newChild, format.right)).asInstanceOf[DateFormatClass])

  def text(micros: Long): UTF8String = {
    if (micros < from || micros >= until) renew(micros)
    last
  }

  private def renew(micros: Long): Unit = {
    last = formatted.eval(InternalRow(micros)).asInstanceOf[UTF8String]
    from = micros
    until = micros
    if (micros >= FormattedTime.Since) try keep(Instant.ofEpochSecond(Math.floorDiv(micros, FormattedTime.Second)).atZone(format.zoneId).truncatedTo(unit))
    catch { case _: DateTimeException | _: ArithmeticException => () }
  }

  /** The text is that of all times from `begin` on for a unit, if clocks do not change meanwhile. */
  private def keep(begin: ZonedDateTime): Unit = {
    val (first, end) = (begin.toInstant, begin.plus(1, unit).toInstant)
    val change = begin.getZone.getRules.nextTransition(first.minusNanos(1))
    if (change == null || !change.getInstant.isBefore(end)) {
      from = Math.multiplyExact(first.getEpochSecond, FormattedTime.Second)
      until = Math.multiplyExact(end.getEpochSecond, FormattedTime.Second)
    }
  }
}

object FormattedTime {
  private val Second = 1000000L
  /** 1900: before, clocks did not go by whole minutes everywhere. */
  private val Since = -2208988800L * Second
  private val (days, minutes) = ("yMd".toSet, "yMdHhma".toSet)
  private val Separators = " -/.:,_".toSet

  /** The same expression, with texts that are kept where the pattern allows it. */
  def of(format: DateFormatClass): Expression = format.right match {
    case Literal(pattern: UTF8String, _) if SQLConf.get.legacyTimeParserPolicy != LegacyBehaviorPolicy.LEGACY =>
      val letters = pattern.toString.toSet -- Separators
      if (letters.subsetOf(days)) FormattedTime(format, ChronoUnit.DAYS)
      else if (letters.subsetOf(minutes)) FormattedTime(format, ChronoUnit.MINUTES)
      else format
    case _ => format
  }
}
