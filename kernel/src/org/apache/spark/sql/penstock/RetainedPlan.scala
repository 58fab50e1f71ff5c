package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import penstock.kernel.engine.{Edge, JoinKind, Operator, RetainedJoin}

/** A join that is corrected for a limited time, taken apart: its kind, the keys of both sides, what else must hold, and when rows are over. */
final class RetainedPlan(node: Retained) {
  private val parts = new JoinPlan(node.join)
  val kind: String = parts.kind
  val leftKeys: Seq[Expression] = parts.leftKeys
  val rightKeys: Seq[Expression] = parts.rightKeys
  val condition: Option[Expression] = parts.condition
  /** The streams whose watermarks count, each with a clock of its own. */
  val streams: Array[String] = node.streams.distinct.sorted.toArray

  /** What a side must send besides its columns: when its rows are over. */
  private val overs: Seq[Seq[NamedExpression]] = Seq(0, 1).map(side => node.over(side).map(Alias(_, "over")()).toSeq)
  def extra(side: Int): Seq[Expression] = overs(side).map(AggregatePlan.plain)
  def extraColumns(side: Int): Seq[Attribute] = overs(side).map(_.toAttribute)

  /** `left` and `right` are the columns that the sides send, when rows are over last. */
  def operator(id: Int, left: Seq[Attribute], right: Seq[Attribute], edges: Seq[Edge]): Operator = {
    val bound = condition.map(BindReferences.bindReference(_, AttributeSeq(left ++ right)))
    RetainedJoin(id, leftKeys.length, JoinKind.all(kind), (left.length, right.length), bound, Seq(0, 1).map(clock), streams.length, edges)
  }
  private def clock(side: Int): Int = if (node.sides.contains(side)) streams.indexOf(node.streams(node.sides.indexOf(side))) else RetainedJoin.NoClock

  /** What is kept how long, for people: of a side, or of both. */
  def text: String = node.sides.indices.map { i =>
    s"rows of ${node.streams(i)} are freed when its watermark passes their time by ${Closing.span(node.retain(i))}"
  }.mkString("kept within retain: ", "; ", "")
  def isFreed(side: Int): Boolean = node.sides.contains(side)
}
