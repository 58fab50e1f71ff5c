package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.{DatetimeType, StringType}
import scala.util.Try
import scala.util.matching.Regex

/** What in a query changes its value although no record came: chance, new names, the clock. Queries within expressions are looked at too. */
object Changing {
  /** Words that Spark reads as a time when it reads the query; 'epoch', another one, is always the same. */
  private val Word = "(?i)\\s*(now|today|tomorrow|yesterday)\\b.*".r
  private val Written = "(?is)\\w+\\s*['\"]\\s*(now|today|tomorrow|yesterday)\\b.*".r

  /** Each as it is written, with line and column where they are known. */
  def in(analyzed: LogicalPlan): Seq[String] = analyzed.collectWithSubqueries { case node => node.expressions }.flatten
    .flatMap(_.collect { case e if isChance(e) || isClock(e) => e })
    .map(e => s"${shown(e)}${e.origin.line.map(l => s" (line $l, column ${e.origin.startPosition.getOrElse(0) + 1})").getOrElse("")}")
    .distinct

  private def isChance(e: Expression): Boolean =
    !e.deterministic && e.children.forall(_.deterministic) && !e.isInstanceOf[SubqueryExpression]

  private def isClock(e: Expression): Boolean = e match {
    case _: CurrentTimestampLike | _: CurrentDate | _: CurrentTime | _: LocalTimestamp | _: LocalTimestampNanos => true
    case Cast(word, _: DatetimeType, _, _) if word.foldable && word.dataType.isInstanceOf[StringType] => Try(word.eval()).toOption.exists(text => matches(Word, String.valueOf(text)))
    case Literal(_, _: DatetimeType) => written(e).exists(matches(Written, _))
    // `to_date('today')` will be a cast; others have what will stand in their place among their children.
    case function: RuntimeReplaceable if !function.isInstanceOf[InheritAnalysisRules] => isClock(function.replacement)
    case _ => false
  }

  private def shown(e: Expression): String = e match {
    case _: Literal => written(e).getOrElse(e.sql)
    case _ => e.sql
  }

  /** The part of the query's text that the expression was read from. */
  private def written(e: Expression): Option[String] =
    for (text <- e.origin.sqlText; start <- e.origin.startIndex; stop <- e.origin.stopIndex if start <= stop && stop < text.length) yield text.substring(start, stop + 1)

  private def matches(pattern: Regex, text: String): Boolean = pattern.pattern.matcher(text).matches
}
