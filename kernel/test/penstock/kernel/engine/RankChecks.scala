package penstock.kernel.engine

import java.util.Random

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateFunction, Mode, Percentile, PercentileDisc, TypedImperativeAggregate}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate => LogicalAggregate, LocalRelation}
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.penstock.AggregatePlan
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import penstock.kernel.Checks
import penstock.kernel.Checks.{equal, holds}
import penstock.kernel.state.Slot
import scala.collection.mutable.ArrayBuffer

/** Functions over all rows, which have a value and how often it counts: as the planner makes them, and as Spark's own answer. */
private final class AskedOfAll(of: DataType, growing: Boolean, distinct: Boolean, functions: (Attribute, Attribute) => Seq[AggregateFunction]) {
  private val columns = Seq(AttributeReference("value", of)(), AttributeReference("times", LongType)())
  private val asked = functions(columns(0), columns(1))
  private val node =
    LogicalAggregate(Nil, asked.map(f => Alias(f.toAggregateExpression(isDistinct = distinct), "answer")()), LocalRelation(columns(0), columns(1)))
  private val plan = new AggregatePlan(node, growing)
  private val inputs = plan.inputs.map(bound)
  private val answers = new Columns(node.output.map(_.dataType))
  private def bound[E <: Expression](e: E): Expression = BindReferences.bindReference[Expression](e, AttributeSeq(columns))

  def operator(limit: Int): OneOperator[Aggregate] = new OneOperator(plan.inputs.map(_.dataType), answers.types, limit,
    edges => Aggregate(1, 0, plan.gathering, plan.buffer, plan.result, plan.ordered, edges))

  /** A row as the operator gets it. */
  def row(value: Any, times: Any): Seq[Any] = inputs.map(_.eval(InternalRow(value, times)))

  /** What Spark's functions make of the rows, as the bytes of the answer. */
  def wanted(rows: Seq[(Any, Any)]): Seq[Byte] = answers.bytes(asked.map { f =>
    val function = bound(f).asInstanceOf[TypedImperativeAggregate[AnyRef]]
    val counted = if (distinct) rows.distinctBy(_._1) else rows
    function.eval(counted.foldLeft(function.createAggregationBuffer())((buffer, row) => function.update(buffer, InternalRow(row._1, row._2))))
  })
}

/** Exact percentiles and modes against Spark's own functions. */
object RankChecks {
  private val Kinds = Seq[(DataType, Random => Any)](
    LongType -> (random => random.nextInt(60) - 30L),
    // Not both -0.0 and 0.0: which of them comes first depends on what else is in Spark's hash table.
    DoubleType -> (random => if (random.nextInt(9) == 0) Seq(Double.NaN, -0.0, Double.PositiveInfinity)(random.nextInt(3)) else (random.nextInt(200) - 99.5) / 7),
    FloatType -> (random => if (random.nextInt(9) == 0) Seq(Float.NaN, Float.NegativeInfinity)(random.nextInt(2)) else random.nextInt(200) / 7.0f),
    DecimalType(30, 2) -> (random => Decimal(BigDecimal(random.nextInt(100) - 50, 2), 30, 2)),
    DayTimeIntervalType() -> (random => random.nextInt(50) * 1_000_003L),
    YearMonthIntervalType() -> (random => random.nextInt(30) - 15))

  private val Few = Seq[(DataType, Seq[Any])](
    LongType -> Seq(1L, 2L, 3L, 5L, 8L, 13L),
    DoubleType -> Seq(0.0, -0.0, Double.NaN, 1.5, -2.5),
    StringType -> Seq("a", "b", "ab", "").map(UTF8String.fromString),
    BinaryType -> Seq(Array[Byte](1), Array[Byte](-1), Array.emptyByteArray))

  def run(checks: Checks): Unit = {
    for ((of, value) <- Kinds; growing <- Seq(false, true))
      checks.seeded(s"percentiles of ${of.sql} equal Spark's, where rows ${if (growing) "only come" else "leave too"}", 4)(
        equalsSpark(new AskedOfAll(of, growing, distinct = false, percentiles), value, _, growing))
    checks.seeded("percentiles of distinct values equal Spark's", 4)(
      equalsSpark(new AskedOfAll(LongType, growing = false, distinct = true, (value, _) => unweighted(value)), Kinds.head._2, _, growing = false))
    for ((of, values) <- Few; growing <- Seq(false, true))
      checks.seeded(s"modes of ${of.sql} equal Spark's, where rows ${if (growing) "only come" else "leave too"}", 4)(
        equalsSpark(new AskedOfAll(of, growing, distinct = false, (value, _) => modes(value)), random => values(random.nextInt(values.size)), _, growing))
    checks.check("one more or one less of 100,000 values costs a few pages")(large())
    checks.check("a frequency below zero is Spark's error")(negative())
  }

  private def unweighted(value: Attribute): Seq[AggregateFunction] = Seq(
    new Percentile(value, Literal(0.5)),
    new Percentile(value, array(0.9, 0.0, 0.25, 1.0, 1.0 / 3)),
    new Percentile(value, Literal(0.3), true),
    PercentileDisc(value, Literal(0.7), reverse = false),
    PercentileDisc(value, array(0.0, 0.1, 1.0), reverse = true),
    PercentileDisc(value, Literal(0.4), reverse = false, 0, 0, legacyCalculation = true))

  private def percentiles(value: Attribute, times: Attribute): Seq[AggregateFunction] =
    unweighted(value) ++ Seq(new Percentile(value, Literal(0.8), times), new Percentile(value, array(0.2, 0.5), Literal(3L)))

  private def modes(value: Attribute): Seq[AggregateFunction] = Seq(new Mode(value, true), new Mode(value, false))

  private def array(percentages: Double*): Expression = Literal.create(new GenericArrayData(percentages.toArray), ArrayType(DoubleType, containsNull = false))

  private[engine] def equalsSpark(asked: AskedOfAll, value: Random => Any, random: Random, growing: Boolean): Unit = {
    val found = asked.operator(256)
    val rows = ArrayBuffer.empty[(Any, Any)]
    var place = 0L
    var answer: Seq[Byte] = Nil
    (1 to 25).foreach { batch =>
      // Now and then most of the rows leave at once, a finger's own among them, and now and then all.
      val leaving = if (growing) 0 else random.nextInt(6) match { case 0 => rows.size; case 1 => rows.size * 9 / 10; case _ => random.nextInt(4) }
      val gone = Seq.fill(math.min(leaving, rows.size))(rows.remove(random.nextInt(rows.size)))
      val come = Seq.fill(random.nextInt(12))((if (random.nextInt(8) == 0) null else value(random), if (random.nextInt(8) == 0) null else random.nextInt(5).toLong))
      rows ++= come
      found.batch((gone.map(_ -> -1L) ++ come.map(_ -> 1L)).map { case ((value, times), weight) =>
        place += 1
        found.envelope(asked.row(value, times), weight, place)
      })
      if (found.sent.nonEmpty) answer = found.sent.last.toSeq.drop(Envelope.rowStart(found.sent.last))
      equal(answer, asked.wanted(rows.toSeq), s"batch $batch, ${rows.size} rows")
      if (random.nextInt(4) == 0) found.restart()
    }
  }

  private def large(): Unit = {
    val asked = new AskedOfAll(LongType, growing = false, distinct = false, (value, _) => Seq(new Percentile(value, array(0.5, 0.99)), new Mode(value, true)))
    val found = asked.operator(Slot.Limit)
    found.batch((0 until 100_000).map(i => found.envelope(asked.row(i * 7L, 1L), 1, i)))
    Seq((0L, -1L), (50_000 * 7L, -1L), (3L, 1L), (699_993L, -1L), (49_999 * 7L, -1L)).zipWithIndex.foreach { case ((value, weight), i) =>
      found.batch(Seq(found.envelope(asked.row(value, 1L), weight, 200_000L + i)))
      holds(found.store.reads < 30 && found.store.writes < 12, s"${found.store.reads} reads and ${found.store.writes} writes at $value")
    }
  }

  private def negative(): Unit = {
    val asked = new AskedOfAll(LongType, growing = true, distinct = false, (value, times) => Seq(new Percentile(value, Literal(0.5), times)))
    val found = asked.operator(256)
    found.batch(Seq(found.envelope(asked.row(null, -1L), 1, 1)))
    val error = try { found.batch(Seq(found.envelope(asked.row(1L, -1L), 1, 2))); "none" } catch { case e: Throwable => e.getMessage }
    holds(error.contains("-1"), error)
  }
}
