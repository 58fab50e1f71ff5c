package penstock.kernel.engine

import java.util.Random

import org.apache.spark.sql.catalyst.expressions.Alias
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, Window => LogicalWindow}
import org.apache.spark.sql.penstock.WindowPlan
import penstock.kernel.Checks
import penstock.kernel.Checks.{equal, holds}
import scala.collection.mutable
import scala.util.{Random => Shuffle}

/** Windows under changes against windows that are computed anew after every batch. */
object WindowChecks {
  private val Upwards = Ordered(descending = false, nullsFirst = true)

  def main(args: Array[String]): Unit = {
    val checks = new Checks(args)
    val cases = new WindowCases(Upwards)
    cases.aggregates.foreach { case (name, over) =>
      checks.seeded(s"$name over every frame", 1)(random => batches(random, Upwards, FrameCase.All.map(over), 12))
    }
    checks.seeded("row_number, rank, dense_rank, percent_rank, cume_dist and ntile", 3)(random => batches(random, Upwards, cases.numbers, 15))
    checks.seeded("lag and lead, with defaults, NULLs left out or not", 3)(random => batches(random, Upwards, cases.shifts, 15))
    ByKind.All.foreach { kind =>
      checks.seeded(s"RANGE frames over ${kind.of.sql} with offsets of ${kind.offset(1).dataType.sql}, up and down", 2)(random => ranges(random, kind))
    }
    checks.seeded("a bound beyond the numbers of its type bounds nothing", 2)(random =>
      batches(random, Upwards, FrameCase.All.filter(!_.byRows).map(cases.aggregates.head._2), 15, _ => WindowChecks.Edges(random.nextInt(WindowChecks.Edges.length))))
    checks.seeded("any functions together, in any order", 10)(together)
    checks.seeded("one function alone", 20)(alone)
    checks.seeded("the order of arrival shows neither in the state nor in the answer", 3)(arrival)
    checks.check("a row that leaves more often than it came is an error")(tooOften())
    WindowPlanChecks.run(checks)
    WindowReachChecks.run(checks)
    checks.close()
  }

  private val Edges = Array(Int.MinValue, Int.MinValue + 1, Int.MinValue + 2, -1, 0, 1, Int.MaxValue - 2, Int.MaxValue - 1, Int.MaxValue)

  /** The operator for functions over windows in `order`, made by the planner's own way. */
  def window(order: Ordered, functions: Seq[FunctionCase], pages: Int = 256): OneOperator[Window] = {
    val named = functions.zipWithIndex.map { case (each, i) => Alias(each.spark, s"f$i")() }
    val node = LogicalWindow(named, Nil, Seq(order.spark), LocalRelation(order.kind.columns))
    val plan = new WindowPlan(node, "UTC")
    val output = order.kind.columns.map(_.dataType) ++ named.map(_.dataType)
    new OneOperator(order.kind.columns.map(_.dataType), output, pages, Window(1, plan.keyWidth, plan.order, plan.frames, plan.values, _))
  }

  private def ranges(random: Random, kind: ByKind): Unit = {
    val order = Ordered(random.nextBoolean(), random.nextBoolean(), kind)
    val over = new WindowCases(order).aggregates.toMap
    batches(random, order, FrameCase.All.filter(!_.byRows).map(over("sum")) :+ over("last")(FrameCase(byRows = false, Some(-2), Some(1))), 12)
  }

  private def everything(order: Ordered): Seq[FunctionCase] = {
    val cases = new WindowCases(order)
    cases.numbers ++ cases.shifts ++ cases.aggregates.flatMap { case (_, over) => FrameCase.All.map(over) }
  }
  private def anyOrder(random: Random): Ordered = Ordered(random.nextBoolean(), random.nextBoolean())

  private def together(random: Random): Unit = {
    val order = anyOrder(random)
    val all = everything(order)
    batches(random, order, Seq.fill(2 + random.nextInt(4))(all(random.nextInt(all.length))), 15)
  }

  private def alone(random: Random): Unit = {
    val order = anyOrder(random)
    val all = everything(order)
    batches(random, order, Seq(all(random.nextInt(all.length))), 20)
  }

  private def batches(random: Random, order: Ordered, functions: Seq[FunctionCase], batches: Int, by: Random => Int = _.nextInt(12)): Unit = {
    val found = window(order, functions)
    val rows = new WindowRows(random, by)
    (1 to batches).foreach { batch =>
      val before = FunctionCase.answer(rows.held, order, functions)
      if (batch == 7) found.restart()
      val envelopes = rows.batch(1 + random.nextInt(if (batch % 5 == 0) 25 else 4)).map { case (item, weight, place) =>
        found.envelope(item.values(order.kind), weight, place)
      }
      same(found.batch(envelopes), OneOperator.difference(before, FunctionCase.answer(rows.held, order, functions)), functions, s"batch $batch")
    }
    found.batch(rows.held.toSeq.map { case (item, times) => found.envelope(item.values(order.kind), -times, rows.place) })
    holds(found.store.isEmpty, "something is left when all rows are gone")
  }

  private def same(found: Map[Seq[Any], Long], wanted: Map[Seq[Any], Long], functions: Seq[FunctionCase], what: String): Unit =
    if (found != wanted) {
      val wrong = OneOperator.difference(wanted, found)
      val columns = functions.indices.filter(i => wrong.groupMapReduce(_._1(i + 4))(_._2)(_ + _).exists(_._2 != 0)).map(functions(_).name)
      throw new AssertionError(s"$what: ${columns.mkString(", ")}\n  too much: ${wrong.filter(_._2 > 0)}\n  too little: ${wrong.filter(_._2 < 0)}")
    }

  private def arrival(random: Random): Unit = {
    val order = anyOrder(random)
    val all = everything(order)
    val functions = Seq.fill(4)(all(random.nextInt(all.length)))
    val found = Array.fill(2)(window(order, functions))
    val rows = new WindowRows(random, _.nextInt(12))
    (1 to 12).foreach { batch =>
      val envelopes = rows.batch(12).map { case (item, weight, place) => found(0).envelope(item.values(order.kind), weight, place) }
      found(0).batch(envelopes)
      found(1).batch(new Shuffle(random.nextLong()).shuffle(envelopes))
      equal(found(1).sent.map(_.toSeq), found(0).sent.map(_.toSeq), s"envelopes of batch $batch")
      equal(found(1).store.content, found(0).store.content, s"state after batch $batch")
    }
  }

  private def tooOften(): Unit = {
    val found = window(Upwards, new WindowCases(Upwards).numbers.take(1))
    val row = Item(Some(1), 1, None, None).values(ByKind.Number)
    found.batch(Seq(found.envelope(row, 1, 1)))
    val refused = try {
      found.batch(Seq(found.envelope(row, -2, 2)))
      false
    } catch { case _: IllegalStateException => true }
    holds(refused, "it is taken")
  }
}

/** Rows that come and go: few values, so that there are ties, NULLs and doubled rows. */
final class WindowRows(random: Random, by: Random => Int) {
  val held = mutable.Map.empty[Item, Long]
  var place = 0L

  /** So many changes: the row, how often it came or left, and the place. */
  def batch(changes: Int): Seq[(Item, Long, Long)] = Seq.fill(changes) {
    val leaves = held.nonEmpty && random.nextInt(if (held.size > 30) 2 else 5) == 0
    val item = if (leaves) held.keys.toSeq.sortBy(_.toString).apply(random.nextInt(held.size)) else fresh
    val weight = if (leaves) -1L else if (random.nextInt(6) == 0) 2L else 1L
    held(item) = held.getOrElse(item, 0L) + weight
    if (held(item) == 0) held.remove(item)
    place += 1
    (item, weight, place)
  }

  private def fresh: Item = Item(
    if (random.nextInt(7) == 0) None else Some(by(random)),
    random.nextInt(4),
    if (random.nextInt(4) == 0) None else Some(random.nextInt(5).toLong),
    if (random.nextInt(6) == 0) None else Some((random.nextInt(2_000) - 1_000) * math.pow(10, random.nextInt(16) - 3)))
}
