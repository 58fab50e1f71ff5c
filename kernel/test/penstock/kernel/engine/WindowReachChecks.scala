package penstock.kernel.engine

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Lead, Literal, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.{DataType, LongType}
import penstock.kernel.Checks
import penstock.kernel.Checks.{equal, holds}
import penstock.kernel.state.{Entries, Slot}

/** What a change costs in a partition of 100,000 rows: the rows whose values can change, and the pages on the way to them. */
object WindowReachChecks {
  private val Rows = 100_000
  private val Upwards = Ordered(descending = false, nullsFirst = true)
  private val Cases = new WindowCases(Upwards)
  private val Over = Cases.aggregates.toMap
  private def at(i: Int, t: Int = 0): Item = Item(Some(10 * i), t, Some(i.toLong), None)

  def run(checks: Checks): Unit = {
    val middle = Item(Some(500_005), 0, Some(7), None)
    checks.check("lag: the row and its neighbour")(reach(shift(-1, ignoreNulls = false), middle, rows = 3, pages = 8))
    checks.check("lead: the row and its neighbour")(reach(shift(1, ignoreNulls = false), middle, rows = 3, pages = 8))
    checks.check("lag over values that are not NULL: up to the next of them")(reach(shift(-1, ignoreNulls = true), middle, rows = 3, pages = 8))
    checks.check("ROWS 2 PRECEDING to 2 FOLLOWING: five rows")(reach(Over("sum")(FrameCase(byRows = true, Some(-2), Some(2))), middle, rows = 6, pages = 10))
    checks.check("RANGE 35 PRECEDING to 35 FOLLOWING: nine rows")(reach(Over("max")(FrameCase(byRows = false, Some(-35), Some(35))), middle, rows = 10, pages = 10))
    checks.check("row_number: from the row to the end")(reach(Cases.numbers.head, Item(Some(999_505), 0, None, None), rows = 51, pages = 20))
    checks.check("a running minimum: until it is the same again")(reach(Over("min")(FrameCase(byRows = false, None, Some(0))), middle, rows = 3, pages = 8))
    checks.check("the last value up to the end: until it is the same again")(reach(Over("last")(FrameCase(byRows = true, Some(0), None)), middle, rows = 3, pages = 8))
    checks.check("a running number of a row that is replaced by its like: two rows")(replaced())
    checks.check("a running median keeps nothing with its rows but the answer")(keepsAnswers())
    checks.check("a running median: from the row to the end")(reachesOn())
    checks.check("the least of the partition: where it stays, the row alone")(stays())
    checks.check("a frame of 2,000 rows is not gathered anew for each of its rows")(wide())
  }

  private def shift(offset: Int, ignoreNulls: Boolean): FunctionCase =
    Cases.shifted(Lead(Item.V, Literal(offset), Literal.create(null, Item.V.dataType), ignoreNulls), offset)

  private def loaded(function: FunctionCase): OneOperator[Window] = {
    val found = WindowChecks.window(Upwards, Seq(function), Slot.Limit)
    found.batch((0 until Rows).map(i => found.envelope(at(i).values(ByKind.Number), 1, i)))
    found
  }

  /** The row comes, and leaves again: each time so many rows are evaluated at most, and the answers take each other back. */
  private def reach(function: FunctionCase, item: Item, rows: Int, pages: Int): Unit = {
    val found = loaded(function)
    def changed(weight: Long): Map[Seq[Any], Long] = {
      val before = found.operator.evaluated
      val answer = found.batch(Seq(found.envelope(item.values(ByKind.Number), weight, Rows + 1)))
      holds(found.operator.evaluated - before <= rows, s"${found.operator.evaluated - before} rows are evaluated, not $rows")
      holds(found.store.reads <= pages && found.store.writes <= pages, s"${found.store.reads} reads and ${found.store.writes} writes")
      answer
    }
    val came = changed(1)
    holds(came.exists(_._1.head == item.by.get), "the row is not in the answer")
    equal(changed(-1), came.map { case (row, weight) => row -> -weight }, "the answer when the row has left again")
  }

  private def replaced(): Unit = {
    val found = loaded(Cases.numbers.head)
    val before = found.operator.evaluated
    val (old, now) = (at(500).values(ByKind.Number), at(500).copy(v = Some(-1)).values(ByKind.Number))
    val answer = found.batch(Seq(found.envelope(old, -1, Rows + 1), found.envelope(now, 1, Rows + 1)))
    equal(answer, Map((old :+ 501) -> -1L, (now :+ 501) -> 1L), "the answer")
    holds(found.operator.evaluated - before <= 2, s"${found.operator.evaluated - before} rows are evaluated")
  }

  private def running(rows: Int): OneOperator[Window] = {
    val found = WindowChecks.window(Upwards, Seq(Over("median")(FrameCase(byRows = false, None, Some(0)))))
    found.batch((0 until rows).map(i => found.envelope(at(i).values(ByKind.Number), 1, i)))
    found
  }

  private def keepsAnswers(): Unit = {
    val (few, many) = (running(100).store.bytes / 100, running(800).store.bytes / 800)
    holds(many <= few + few / 10, s"$few bytes for each of 100 rows, $many for each of 800")
  }

  private def reachesOn(): Unit = {
    val found = running(500)
    val before = found.operator.evaluated
    found.batch(Seq(found.envelope(at(495, t = 1).values(ByKind.Number), 1, Rows)))
    // Its peer has the same frame.
    equal(found.operator.evaluated - before, 6L, "rows that are evaluated")
  }

  private def stays(): Unit = {
    val found = WindowChecks.window(Upwards, Seq(Over("min")(FrameCase(byRows = true, None, None))))
    found.batch((0 until 2_000).map(i => found.envelope(at(i).values(ByKind.Number), 1, i)))
    val (before, row) = (found.operator.evaluated, at(700, t = 1).values(ByKind.Number))
    equal(found.batch(Seq(found.envelope(row, 1, Rows))), Map((row :+ 0L) -> 1L), "the answer")
    equal(found.operator.evaluated - before, 1L, "rows that are evaluated")
    equal(found.batch(Seq(found.envelope(row, -1, Rows + 1))), Map((row :+ 0L) -> -1L), "the answer when the row has left again")
    equal(found.operator.evaluated - before, 1L, "rows that are evaluated when it has left")
  }

  private def wide(): Unit = {
    val framed = Framed(Bound.Rows(0), Bound.Rows(1_999), Seq(BoundReference(0, LongType, nullable = true)), Gathering(Seq(Folded(CountedSum(), 0, -1, 1)), 1), Seq(LongType))
    val queue = FrameQueue.of(new FrameFunctions(framed, 1))
    val unsafe = UnsafeProjection.create(Array[DataType](LongType))
    val row = new UnsafeRow(1)
    CountedSum.steps = 0
    (0 until 10_000).foreach { i =>
      queue.push(unsafe(InternalRow(i.toLong)).copy().getBytes, 1, i)
      if (i >= 2_000) queue.pop()
      row.pointTo(queue.columns, queue.columns.length)
      equal(row.getLong(0), (math.max(0L, i - 1_999L) to i).sum, s"sum of frame $i")
    }
    holds(CountedSum.steps < 60_000, s"${CountedSum.steps} steps for 10,000 rows")
  }
}

/** A sum that counts how often it is added to and merged. */
final case class CountedSum() extends Fold {
  override def longs: Int = 1
  override def merges: Boolean = true
  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit = {
    CountedSum.steps += 1
    g.numbers(n) += weight * row.getLong(input)
  }
  override def merge(g: Gathered, n: Int, o: Int, other: Gathered): Unit = {
    CountedSum.steps += 1
    g.numbers(n) += other.numbers(n)
  }
  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit = buffer.setLong(at, g.numbers(n))
}

object CountedSum {
  var steps = 0L
}
