package penstock.kernel.engine

import java.util.Random

import org.apache.spark.sql.catalyst.expressions.{Ascending, BoundReference, Descending, NullsLast, SortOrder}
import org.apache.spark.sql.types.{DataType, IntegerType, LongType}
import penstock.kernel.Checks
import penstock.kernel.Checks.{equal, holds}
import penstock.kernel.state.{Key, Slot}
import scala.collection.mutable
import scala.util.{Random => Shuffle}

/** The first rows of a key against a sorted list. */
object TopKChecks {
  private val Types = Seq[DataType](IntegerType, LongType)
  private val Order = RowOrder(2, Seq(
    SortOrder(BoundReference(0, IntegerType, nullable = true), Descending, NullsLast, Nil),
    SortOrder(BoundReference(1, LongType, nullable = true), Ascending)), 1)
  private type Row = (Option[Int], Long)

  def main(args: Array[String]): Unit = {
    val checks = new Checks(args)
    checks.seeded("the first rows equal those of a sorted list, with ties, NULLs and doubled rows", 6)(random =>
      batches(random, limit = 1 + random.nextInt(6), offset = random.nextInt(4), growing = false))
    checks.seeded("the first rows of an input that only grows", 6)(random =>
      batches(random, limit = 1 + random.nextInt(6), offset = random.nextInt(4), growing = true))
    checks.seeded("no limit, only an offset", 2)(random => batches(random, Long.MaxValue, offset = 3, growing = false))
    checks.seeded("no rows are asked for", 1)(random => batches(random, limit = 0, offset = 0, growing = random.nextBoolean()))
    Seq(Counted.Ranks, Counted.Groups).foreach { counted =>
      checks.seeded(s"the first rows by $counted, with their peers", 6)(random =>
        batches(random, limit = 1 + random.nextInt(4), offset = 0, growing = false, counted))
      checks.seeded(s"the first rows by $counted of an input that only grows", 6)(random =>
        batches(random, limit = 1 + random.nextInt(4), offset = 0, growing = true, counted))
    }
    checks.seeded("the order of arrival shows neither in the state nor in the answer", 4)(arrival)
    checks.check("an input that only grows keeps no more rows than the answer needs")(bounded(Counted.Rows, 5))
    checks.check("by rank too: the peers of the last one are needed")(bounded(Counted.Ranks, 10))
    checks.check("and by groups of peers")(bounded(Counted.Groups, 50))
    checks.check("without an order rows go by their bytes")(unordered())
    checks.check("the top row of 100,000 leaves, and comes back: a handful of pages")(large())
    checks.close()
  }

  private def topK(limit: Long, offset: Long, growing: Boolean, pages: Int = 256, counted: Counted = Counted.Rows): OneOperator[TopK] =
    new OneOperator(Types, Types, pages, TopK(1, 0, Order, limit, offset, growing, _, counted))

  private def values(row: Row): Seq[Any] = Seq(row._1.map(_.asInstanceOf[AnyRef]).orNull, row._2)

  /** The rows before which there are less than `limit` rows that are no peers, or groups of peers. */
  private def ranked(rows: collection.Map[Row, Long], limit: Long, counted: Counted): Map[Seq[Any], Long] = {
    def precedes(a: Option[Int], b: Option[Int]): Boolean = a.isDefined && (b.isEmpty || a.get > b.get)
    rows.filter { case ((value, _), _) =>
      val before = rows.toSeq.filter { case ((other, _), _) => precedes(other, value) }
      (if (counted == Counted.Ranks) before.map(_._2).sum else before.map(_._1._1).distinct.size.toLong) < limit
    }.map { case (row, times) => values(row) -> times }.toMap
  }

  private def wanted(rows: collection.Map[Row, Long], limit: Long, offset: Long, counted: Counted): Map[Seq[Any], Long] =
    if (counted == Counted.Rows) wanted(rows, limit, offset) else ranked(rows, limit, counted)

  private def wanted(rows: collection.Map[Row, Long], limit: Long, offset: Long): Map[Seq[Any], Long] = {
    val sorted = rows.toSeq.sortBy { case ((a, b), _) => (a.isEmpty, a.map(-_).getOrElse(0), b) }
    val copies = sorted.flatMap { case (row, times) => Seq.fill(times.toInt)(values(row)) }
    copies.drop(offset.toInt).take(math.min(limit, Int.MaxValue.toLong).toInt).groupMapReduce(identity)(_ => 1L)(_ + _)
  }

  private def batches(random: Random, limit: Long, offset: Long, growing: Boolean, counted: Counted = Counted.Rows): Unit = {
    val found = topK(limit, offset, growing, counted = counted)
    val rows = mutable.Map.empty[Row, Long]
    var place = 0L
    (1 to 30).foreach { batch =>
      val before = wanted(rows, limit, offset, counted)
      val envelopes = Seq.fill(1 + random.nextInt(12))(step(random, rows, growing)).map { case (row, weight) =>
        place += 1
        found.envelope(values(row), weight, place)
      }
      equal(found.batch(envelopes), OneOperator.difference(before, wanted(rows, limit, offset, counted)), s"batch $batch")
    }
    if (!growing) {
      found.batch(rows.toSeq.map { case (row, times) => found.envelope(values(row), -times, place + 1) })
      holds(found.store.isEmpty, "something is left when all rows are gone")
    }
  }

  /** A row comes, or one of those that are there leaves. */
  private def step(random: Random, rows: mutable.Map[Row, Long], growing: Boolean): (Row, Long) = {
    val leaves = !growing && rows.nonEmpty && random.nextInt(5) < 2
    val row: Row =
      if (leaves) rows.keys.toSeq.sortBy(_.toString).apply(random.nextInt(rows.size))
      else (if (random.nextInt(6) == 0) None else Some(random.nextInt(8)), random.nextInt(3).toLong)
    val weight = if (leaves) -1L else 1L + random.nextInt(2)
    rows(row) = rows.getOrElse(row, 0L) + weight
    if (rows(row) == 0) rows.remove(row)
    (row, weight)
  }

  private def arrival(random: Random): Unit = {
    val growing = random.nextBoolean()
    val found = Array.fill(2)(topK(3, 1, growing))
    val rows = mutable.Map.empty[Row, Long]
    (1 to 15).foreach { batch =>
      val envelopes = Seq.fill(20)(step(random, rows, growing)).zipWithIndex.map { case ((row, weight), i) =>
        found(0).envelope(values(row), weight, batch * 100L + i)
      }
      found(0).batch(envelopes)
      found(1).batch(new Shuffle(random.nextLong()).shuffle(envelopes))
      equal(found(1).sent.map(_.toSeq), found(0).sent.map(_.toSeq), s"envelopes of batch $batch")
      equal(found(1).store.content, found(0).store.content, s"state after batch $batch")
    }
  }

  private def bounded(counted: Counted, rows: Int): Unit = {
    val found = if (counted == Counted.Rows) topK(3, 2, growing = true) else topK(5, 0, growing = true, counted = counted)
    (0 until 1_000).foreach(i => found.batch(Seq(found.envelope(values((Some(i % 100), i)), 1, i))))
    val slot = new Slot(found.store.begin(), 256, found.operator.orders)
    val cursor = slot.state(new Key(Array.emptyByteArray, 0, 0, 0L)).entries(0).ascending
    var count = 0
    while (cursor.next()) count += 1
    equal(count, rows, "rows that are kept")
  }

  private def unordered(): Unit = {
    val found = new OneOperator(Types, Types, 256, TopK(1, 0, RowOrder(2, Nil, 0), 2, 0, growing = false, _))
    val first = found.batch(Seq((Some(3), 1L), (Some(1), 1L), (Some(2), 1L)).map(row => found.envelope(values(row), 1, 1)))
    equal(first, Map(values((Some(1), 1L)) -> 1L, values((Some(2), 1L)) -> 1L), "the first two")
  }

  private def large(): Unit = {
    val found = topK(10, 5, growing = false, Slot.Limit)
    found.batch((0 until 100_000).map(i => found.envelope(values((Some(i), 0)), 1, i)))
    val gone = found.batch(Seq(found.envelope(values((Some(99_999), 0)), -1, 100_001)))
    equal(gone, Map(values((Some(99_994), 0)) -> -1L, values((Some(99_984), 0)) -> 1L), "when the top row has left")
    holds(found.store.reads < 20 && found.store.writes < 10, s"${found.store.reads} reads and ${found.store.writes} writes")
    val back = found.batch(Seq(found.envelope(values((Some(99_999), 0)), 1, 100_002)))
    equal(back, gone.map { case (row, weight) => row -> -weight }, "when it has come back")
    equal(found.batch(Seq(found.envelope(values((Some(7), 1)), 1, 100_003))), Map.empty, "when a row comes far below")
  }
}
