package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import penstock.kernel.engine.{Counted, Edge, Operator, TopK}

/** The first rows of each partition, taken apart: its key, what its input must send, and the order. */
final class TopPlan(partition: Seq[Expression], orders: Seq[SortOrder], columns: Seq[Attribute], limit: Int, offset: Int, counted: Counted) {
  val keys: Seq[Expression] = partition.map(AggregatePlan.keyed(_, "PARTITION BY"))

  /** `spread` is how many columns the key has besides: the part that a row is in. */
  def operator(id: Int, growing: Boolean, spread: Int, edges: Seq[Edge], closing: Option[Closing]): Operator =
    TopK(id, keys.length + spread, WindowPlan.order(orders, columns), limit, offset, growing, edges, counted, closing.flatMap(_.timing))
}
