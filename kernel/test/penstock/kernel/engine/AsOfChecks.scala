package penstock.kernel.engine

import java.util.Random

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.LongType
import penstock.kernel.Checks
import penstock.kernel.Checks.{equal, holds}
import scala.collection.mutable

/** The as-of join against a search through all right rows. A row is a number and its time. */
object AsOfChecks {
  private val Side = new Columns(Seq(LongType, LongType))
  private val Both = new Columns(Seq(LongType, LongType, LongType, LongType))
  private val Out = Target(100, 0, 100)
  private type Row = (Long, Long)
  private val Order = RowOrder(2, Seq(SortOrder(Side(1), Ascending), SortOrder(Side(0), Ascending)), ranked = 1)
  /** A version with an odd number counts for rows of an even number only, one with an even number for all. */
  private val Odd = Some(Or(even(Both(0)), even(Both(2))))
  private val Near = Some(LessThanOrEqual(Abs(Subtract(Both(1), Both(3))), Literal(4L)))
  private def even(e: Expression): Expression = EqualTo(Remainder(e, Literal(2L)), Literal(0L))

  def run(checks: Checks): Unit = {
    for (forward <- Seq(false, true); exact <- Seq(false, true)) {
      val name = s"as-of ${if (forward) "forward" else "backward"}${if (exact) "" else ", not at the same time"}"
      checks.seeded(name, 10)(joins(_, Nearest(forward, exact)))
      checks.seeded(s"$name, under a condition", 5)(joins(_, Nearest(forward, exact, condition = Odd)))
      checks.seeded(s"$name, under a condition that some versions always fulfil", 10)(joins(_, Nearest(forward, exact, Odd, Some(even(Side(0))))))
      checks.seeded(s"$name, within a distance", 5)(joins(_, Nearest(forward, exact, within = Near)))
    }
    checks.check("a version concerns the rows up to the next one that matches all")(reach())
    checks.check("rows go when the watermark of the versions has passed them, and what was given out for them stays")(freeing())
    checks.check("a pair has the larger place and the smaller stamp of its rows")(places())
  }

  private def asOf(nearest: Nearest, outer: Boolean, edges: Seq[Edge]): AsOf = AsOf(1, 0, outer, (Order, Order), nearest, edges)
  private def side(port: Int): Route = new Route(Edge(Target(1, port, 1), None, Nil, Side.all))

  /** The partner of each left row, found by looking at all. */
  private def wanted(lefts: Iterable[Row], rights: Iterable[Row], nearest: Nearest, outer: Boolean): Iterable[Seq[Any]] = lefts.flatMap { l =>
    def holds(condition: Option[Expression], r: Row): Boolean = condition.forall(_.eval(Both.row(values(l) ++ values(r))) == true)
    val sign = if (nearest.forward) 1L else -1L
    val candidates = rights.filter(r => sign * (r._2 - l._2) > 0 || nearest.exact && r._2 == l._2).filter(holds(nearest.condition, _))
    val best = candidates.minByOption(r => (sign * r._2, sign * r._1)).filter(holds(nearest.within, _))
    best.map(r => values(l) ++ values(r)).orElse(Option.when(outer)(values(l) ++ Seq(null, null)))
  }
  private def values(row: Row): Seq[Any] = Seq(row._1, row._2)

  private def joins(random: Random, nearest: Nearest): Unit = {
    val outer = random.nextBoolean()
    val levels = new Levels(Seq(Seq(Chain(1, Seq(asOf(nearest, outer, Seq(Edge(Out, None, Nil, Both.all))))))), random)
    val held = Seq.fill(2)(mutable.Map.empty[Row, Long])
    val found = new Tallies
    var place = 0L
    (1 to 25).foreach { batch =>
      val changes = Seq.fill(random.nextInt(8)) {
        val port = random.nextInt(2)
        place += 1
        val (row, weight) = step(random, held(port))
        side(port).envelope(Side.row(values(row)), weight, 0, place)
      }
      found.take(levels.batch(changes))
      def copies(port: Int): Iterable[Row] = held(port).toSeq.flatMap { case (row, times) => Seq.fill(times.toInt)(row) }
      found.same(Out.operator, Both, wanted(copies(0), copies(1), nearest, outer), s"batch $batch")
      if (random.nextInt(4) == 0) levels.restart()
    }
    found.take(levels.batch(held.zipWithIndex.flatMap { case (rows, port) =>
      rows.toSeq.map { case (row, times) => side(port).envelope(Side.row(values(row)), -times, 0, place + 1) }
    }))
    equal(found.of(Out.operator), Map.empty, "pairs of nothing")
    holds(levels.isEmpty, "something is left when all rows are gone")
  }

  /** A row comes, or one of those that are there leaves. */
  private def step(random: Random, rows: mutable.Map[Row, Long]): (Row, Long) = {
    val leaves = rows.nonEmpty && random.nextInt(5) < 2
    val row: Row = if (leaves) rows.keys.toSeq.sorted.apply(random.nextInt(rows.size)) else (random.nextInt(6).toLong, random.nextInt(15).toLong)
    val weight = if (leaves) -1L else 1L
    rows(row) = rows.getOrElse(row, 0L) + weight
    if (rows(row) == 0) rows.remove(row)
    (row, weight)
  }

  private def reach(): Unit = {
    val one = new OneOperator(Side.types, Both.types, 256, asOf(Nearest(forward = false, exact = true, Odd, Some(even(Side(0)))), outer = true, _))
    def at(port: Int, row: Row, weight: Long = 1): Array[Byte] = {
      val envelope = one.envelope(values(row), weight, 1)
      org.apache.spark.unsafe.Platform.putShort(envelope, org.apache.spark.unsafe.Platform.BYTE_ARRAY_OFFSET + 4, port.toShort)
      envelope
    }
    one.batch((0 until 1000).map(i => at(0, (1L, i.toLong))) ++ Seq(at(1, (2L, 100L)), at(1, (1L, 150L)), at(1, (2L, 200L))))
    def looks(changes: Array[Byte]*): Long = {
      val before = one.operator.looked
      one.batch(changes)
      one.operator.looked - before
    }
    equal(looks(at(1, (4L, 120L))), 160L, "rows looked at for a version between two that match all: twice those from 120 up to 200")
    equal(looks(at(1, (4L, 120L), -1), at(1, (4L, 130L))), 160L, "for two in the same stretch")
    equal(looks(at(0, (5L, 500L))), 1L, "for a row")
  }

  private def freeing(): Unit = {
    val operator = asOf(Nearest(forward = false, exact = true), outer = true, Seq(Edge(Out, None, Nil, Both.all))).copy(ages = Some(Ages(1, over = 1, kept = 1)))
    val levels = new Levels(Seq(Seq(Chain(1, Seq(operator)))), new Random(1), slots = 1)
    val found = new Tallies
    def batch(rows: Array[Byte]*): Unit = found.take(levels.batch(rows))
    def row(port: Int, number: Long, time: Long): Array[Byte] = side(port).envelope(Side.row(Seq(number, time)), 1, 0, number)
    def tick(time: Long): Array[Byte] = Envelope.tick(Target(1, 0, 1), 0, time)
    batch((1L to 5L).map(i => row(0, i, i)): _*)
    batch(row(1, 10, 1), tick(3))
    levels.restart()
    batch(row(1, 11, 2), row(0, 6, 2))
    val now = Seq(1 -> 10, 2 -> 10, 3 -> 11, 4 -> 11, 5 -> 11, 6 -> 11).map { case (l, r) => Seq[Any](l.toLong, if (l == 6) 2L else l.toLong, r.toLong, r - 9L) }
    found.same(Out.operator, Both, now, "rows that were there, and one that came late")
    batch(tick(100))
    val kept = levels.pages
    batch((1L to 50L).map(i => row(0, 100 + i, 50)): _*)
    equal(levels.pages, kept, "pages when all rows are gone as they come")
    found.same(Out.operator, Both, now ++ (1L to 50L).map(i => Seq[Any](100 + i, 50L, 11L, 2L)), "rows that came late")
  }

  private def places(): Unit = {
    val levels = new Levels(Seq(Seq(Chain(1, Seq(asOf(Nearest(forward = false, exact = true), outer = false, Seq(Edge(Out, None, Nil, Both.all))))))), new Random(1))
    levels.batch(Seq(side(0).envelope(Side.row(Seq(1L, 5L)), 1, 30, 7)))
    val Seq(pair) = levels.batch(Seq(side(1).envelope(Side.row(Seq(2L, 4L)), 1, 20, 9))): @unchecked
    equal((Envelope.place(pair), Envelope.stamp(pair)), (9L, 20L), "place and stamp")
  }
}
