package penstock.kernel.engine

import java.util.Random

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Alias, AttributeReference, AttributeSeq, BindReferences, Expression}
import org.apache.spark.sql.catalyst.expressions.aggregate.{Count, Sum}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate => LogicalAggregate, LocalRelation}
import org.apache.spark.sql.penstock.AggregatePlan
import org.apache.spark.sql.types.{LongType, StructField, StructType}
import penstock.kernel.Checks
import penstock.kernel.Checks.{equal, holds}
import scala.collection.mutable

/** Windows that close as the clocks of two streams go on, against plain sums. */
object TimeChecks {
  private val Length = 10L
  private val Window = StructType(Seq(StructField("start", LongType), StructField("end", LongType)))
  private val window = AttributeReference("window", Window)()
  private val name = AttributeReference("name", LongType)()
  private val value = AttributeReference("value", LongType)()
  private val node = LogicalAggregate(
    Seq(name, window),
    Seq(name, window) ++ Seq(Count(value), new Sum(value)).map(f => Alias(f.toAggregateExpression(), "answer")()),
    LocalRelation(window, name, value))
  private val plan = new AggregatePlan(node, growing = false)
  private val source = new Columns(Seq(Window, LongType, LongType))
  private val answer = new Columns(node.output.map(_.dataType))
  private val arriving = {
    def bound(e: Expression): Expression = BindReferences.bindReference(e, AttributeSeq(Seq(window, name, value)))
    new Route(Edge(Target(1, 0, 1), None, plan.keys.map(bound), plan.inputs.map(bound)))
  }

  def run(checks: Checks): Unit = {
    checks.seeded("windows are right at every batch, and go when they are over", 12)(played(_, waits = false, allowed = 0))
    checks.seeded("windows that wait are shown once, when they are complete", 12)(played(_, waits = true, allowed = 0))
    checks.seeded("windows that are shown are corrected as long as that is allowed", 12)(played(_, waits = true, allowed = 3 * Length))
    checks.seeded("windows without waiting are corrected as long as that is allowed", 6)(played(_, waits = false, allowed = 2 * Length))
  }

  private def aggregate(waits: Boolean, allowed: Long): Aggregate = Aggregate(
    1, plan.keyWidth, plan.gathering, plan.buffer, plan.result, plan.ordered, Seq(Edge(FoldChecks.Out, None, Nil, answer.all)),
    Some(Timing(window = 1, struct = true, more = 0, clocks = 2, allowed, waits)))

  /** All rows that were not late, by name and window. */
  private final class Model {
    val rows = mutable.Map.empty[(Long, Long), mutable.ArrayBuffer[Long]]
    def wanted(shown: Long => Boolean): Seq[Seq[Any]] = rows.toSeq.collect {
      case ((name, end), values) if values.nonEmpty && shown(end) =>
        Seq(name, InternalRow(end - Length, end), values.size.toLong, values.sum)
    }
  }

  private def played(random: Random, waits: Boolean, allowed: Long): Unit = {
    val levels = new Levels(Seq(Seq(Chain(1, Seq(aggregate(waits, allowed))))), random, rereads = allowed > 0)
    val model = new Model
    val found = new Tallies
    val clocks = Array.fill(2)(Windows.None)
    var once = Set.empty[Seq[Byte]]
    (1 to 25).foreach { batch =>
      val before = clocks.min
      val rows = Seq.fill(random.nextInt(30))(change(model, random, before, allowed, batch)).flatten
      val ticks = clocks.indices.filter(_ => random.nextBoolean()).flatMap { clock =>
        clocks(clock) = math.max(clocks(clock), batch * Length / 2 + random.nextInt(25) - 12)
        (0 until 4).map(Envelope.tick(Target(1, clock, 1), _, clocks(clock)))
      }
      val out = levels.batch(rows ++ ticks)
      found.take(out)
      if (waits && allowed == 0) out.foreach { envelope =>
        val row = envelope.toSeq.drop(Envelope.rowStart(envelope))
        holds(Envelope.weight(envelope) == 1 && !once(row), "a row of a complete window is given out once")
        once += row
      }
      found.same(FoldChecks.Out.operator, answer, model.wanted(end => !waits || end <= clocks.min), s"batch $batch")
      if (random.nextInt(6) == 0) levels.restart()
    }
    val end = clocks.indices.flatMap(clock => (0 until 4).map(Envelope.tick(Target(1, clock, 1), _, Long.MaxValue / 2)))
    found.take(levels.batch(end))
    found.same(FoldChecks.Out.operator, answer, model.wanted(_ => true), "when all is over")
    holds(levels.pages == 0, "no page is left of windows that are over")
  }

  /** A row that comes, or one that leaves, in a window that is still kept. */
  private def change(model: Model, random: Random, before: Long, allowed: Long, batch: Int): Option[Array[Byte]] = {
    val end = math.floorDiv(batch * Length / 2 + random.nextInt(60) - 30, Length) * Length + Length
    val key = (random.nextInt(4).toLong, end)
    val values = model.rows.getOrElseUpdate(key, mutable.ArrayBuffer.empty)
    if (before != Windows.None && end + allowed <= before) None
    else {
      val leaves = values.nonEmpty && random.nextInt(3) == 0
      val value = if (leaves) values.remove(random.nextInt(values.size)) else random.nextInt(100).toLong
      if (!leaves) values += value
      val row = source.row(Seq(InternalRow(end - Length, end), key._1, value))
      Some(arriving.envelope(row, if (leaves) -1 else 1, before, batch))
    }
  }
}
