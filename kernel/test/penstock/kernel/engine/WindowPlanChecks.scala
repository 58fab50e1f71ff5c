package penstock.kernel.engine

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, Window => LogicalWindow}
import org.apache.spark.sql.penstock.{Unsupported, WindowPlan}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import penstock.kernel.Checks
import penstock.kernel.Checks.{equal, holds}

/** Windows read from Catalyst's tree, and values that are equal though their bytes are not. */
object WindowPlanChecks {
  private val X = AttributeReference("x", DoubleType)()
  private val Name = AttributeReference("name", StringType("UTF8_LCASE"))()
  private val Pairs = AttributeReference("pairs", MapType(IntegerType, IntegerType))()
  private val Running = SpecifiedWindowFrame(RangeFrame, UnboundedPreceding, CurrentRow)

  def run(checks: Checks): Unit = {
    checks.check("functions with the same frame are gathered together")(shared())
    checks.check("the columns decide ties, those without an order left out")(ties())
    checks.check("partition keys are normalized: -0.0 and 0.0 are one key, and so are texts that are equal under a collation")(keys())
    checks.check("what cannot be kept is refused by name")(refusals())
    checks.check("-0.0 and 0.0 are peers, NaN has its peers, too")(peers())
    checks.check("an offset that is nothing beside a large number reaches the peers")(absorbed())
    checks.check("a value that the optimizer has found already is given to every row")(found())
  }

  private def plan(functions: Seq[Expression], frame: SpecifiedWindowFrame = Running, partition: Seq[Expression] = Nil): WindowPlan = {
    val named = functions.map(f => Alias(WindowExpression(f, WindowSpecDefinition(partition, Seq(SortOrder(X, Ascending)), frame)), "f")())
    new WindowPlan(LogicalWindow(named, partition, Seq(SortOrder(X, Ascending)), LocalRelation(Pairs, X, Name)), "UTC")
  }
  private def aggregate(f: AggregateFunction, distinct: Boolean = false): Expression = AggregateExpression(f, Complete, distinct)

  private def shared(): Unit = {
    val made = plan(Seq(aggregate(Sum(X)), aggregate(Max(X)), aggregate(StddevPop(X)), Rank(Seq(X)), RowNumber(), PercentRank(Seq(X)), CumeDist()))
    equal(made.frames.map(each => (each.lower, each.upper, each.gathering.folds.length)), Seq(
      (Bound.Unbounded, Bound.Peers, 3),
      (Bound.Unbounded, Bound.Peers, 1),
      (Bound.Unbounded, Bound.BeforePeers, 2),
      (Bound.Unbounded, Bound.Rows(0), 1),
      (Bound.Unbounded, Bound.Unbounded, 1)), "frames")
    equal(made.values.map(_.dataType), Seq(DoubleType, DoubleType, DoubleType, IntegerType, IntegerType, DoubleType, DoubleType), "types of the values")
  }

  private def ties(): Unit = {
    val order = plan(Seq(RowNumber())).order
    equal((order.width, order.ranked, order.orders.map(_.child.asInstanceOf[BoundReference].ordinal)), (3, 1, Seq(1, 2)), "order")
  }

  private def keys(): Unit = {
    val key = BindReferences.bindReference(plan(Seq(RowNumber()), partition = Seq(X)).keys.head, AttributeSeq(Seq(X)))
    val bits = Seq(-0.0, 0.0).map(x => java.lang.Double.doubleToRawLongBits(key.eval(InternalRow(x)).asInstanceOf[Double]))
    equal(bits.distinct.length, 1, "keys")
    val named = BindReferences.bindReference(plan(Seq(RowNumber()), partition = Seq(Name)).keys.head, AttributeSeq(Seq(Name)))
    val texts = Seq("ann", "ANN", "bob").map(name => named.eval(InternalRow(UTF8String.fromString(name))).asInstanceOf[Array[Byte]].toSeq)
    equal(texts.distinct.length, 2, "keys under a collation")
  }

  private def refusals(): Unit = {
    refused("DISTINCT")(plan(Seq(aggregate(Sum(X), distinct = true))))
    refused("not determined")(plan(Seq(aggregate(KllSketchAggDouble(X)))))
    refused("not supported")(plan(Seq(aggregate(Sum(X))), SpecifiedWindowFrame(RangeFrame, Literal(-1), CurrentRow)))
  }
  private def refused(part: String)(made: => WindowPlan): Unit = {
    val said = try {
      made
      "nothing"
    } catch { case refusal: Unsupported => refusal.getMessage }
    holds(said.contains(part), s"found $said, wanted a refusal with $part")
  }

  private def peers(): Unit = {
    val values = Seq(0.0, -0.0, Double.NaN, 1.0, java.lang.Double.longBitsToDouble(0x7ff8000000000001L))
    val ranks = Seq("rank", "dense_rank", "cume_dist").map(name => (order: Ordered) => new WindowCases(order).numbers.find(_.name == name).get)
    val order = Ordered(descending = false, nullsFirst = true, ByKind(DoubleType, values(_), n => Literal(n.toDouble)))
    val found = WindowChecks.window(order, ranks.map(_(order)))
    val answer = values.indices.flatMap(i => found.batch(Seq(found.envelope(Item(Some(i), i, None, None).values(order.kind), 1, i))).toSeq)
    // Without the first column: NaN does not equal itself here.
    val last = answer.groupMapReduce(_._1.tail)(_._2)(_ + _).filter(_._2 != 0).keys.toSeq.sortBy(_.head.asInstanceOf[Int]).map(_.drop(3))
    equal(last, Seq(Seq[Any](1, 1, 0.4), Seq[Any](1, 1, 0.4), Seq[Any](4, 3, 1.0), Seq[Any](3, 2, 0.6), Seq[Any](4, 3, 1.0)), "ranks")
  }

  private def absorbed(): Unit = {
    val order = Ordered(descending = false, nullsFirst = true, ByKind(DoubleType, _ => 1e300, n => Literal(n.toDouble)))
    val counts = new WindowCases(order).aggregates.toMap.apply("count of some")
    val frames = Seq(FrameCase(byRows = false, Some(-2), Some(-1)), FrameCase(byRows = false, None, Some(-1)), FrameCase(byRows = false, Some(1), None))
    val found = WindowChecks.window(order, frames.map(counts))
    def row(t: Int, count: Long): Seq[Any] = Item(Some(0), t, None, None).values(order.kind) ++ frames.map(_ => count)
    val changes = Seq(4, 3, 2).map(t => found.batch(Seq(found.envelope(Item(Some(0), t, None, None).values(order.kind), 1, t))))
    equal(changes, Seq(
      Map(row(4, 1) -> 1L),
      Map(row(4, 1) -> -1L, row(4, 2) -> 1L, row(3, 2) -> 1L),
      Map(row(4, 2) -> -1L, row(3, 2) -> -1L, row(4, 3) -> 1L, row(3, 3) -> 1L, row(2, 3) -> 1L)), "counts")
  }

  private def found(): Unit = {
    val made = plan(Seq(Literal(0L), RowNumber()))
    equal((made.frames.length, made.values.head), (1, Literal(0L)), "frames and the first value")
  }
}
