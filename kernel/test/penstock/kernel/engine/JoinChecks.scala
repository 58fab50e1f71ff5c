package penstock.kernel.engine

import java.util.Random

import org.apache.spark.sql.catalyst.expressions.{Expression, LessThan}
import org.apache.spark.sql.types.LongType
import penstock.kernel.Checks
import penstock.kernel.Checks.equal
import scala.collection.mutable

/** A bag of rows that changes, and the envelopes that tell of it. */
final class Changing(random: Random, arriving: Route, columns: Columns, keys: Int, values: Int) {
  val held = mutable.Map.empty[Seq[Any], Long]

  /** Random changes: rows come, also several times, and leave, also those that have just come. Places rise with time. */
  def changes(count: Int, place: () => Long): Seq[Array[Byte]] = Seq.fill(count) {
    val leaving = held.nonEmpty && random.nextInt(5) < 2
    val row = if (leaving) held.keys.toSeq(random.nextInt(held.size)) else Seq[Any](random.nextInt(keys).toLong, random.nextInt(values).toLong)
    val weight = if (leaving) -(1 + random.nextInt(held(row).toInt)).toLong else 1L + random.nextInt(2)
    held(row) = held.getOrElse(row, 0L) + weight
    if (held(row) == 0) held.remove(row)
    arriving.envelope(columns.row(row), weight, 0, place())
  }

  def rows: Iterable[Seq[Any]] = held.flatMap { case (row, times) => Seq.fill(times.toInt)(row) }
}

/** The inner join: every pair as often as its two rows are there, whatever comes and leaves together. */
object JoinChecks {
  private val Side = new Columns(Seq(LongType, LongType))
  private val Both = new Columns(Seq(LongType, LongType, LongType, LongType))
  private val Out = Target(100, 0, 100)

  def run(checks: Checks): Unit = {
    checks.seeded("a join has every pair, as often as its rows are there", 20)(random => joins(random, None, keys = 6, values = 4))
    checks.seeded("a join with a condition has the pairs for which it holds", 20)(random => joins(random, Some(LessThan(Both(1), Both(3))), keys = 6, values = 4))
    checks.seeded("a join of one key with very many rows", 3)(random => joins(random, Some(LessThan(Both(1), Both(3))), keys = 1, values = 40))
    checks.seeded("a join of rows of one relation with themselves", 10)(selfJoins)
    checks.seeded("a row that replaces another unseen concerns the pairs of one of the two", 20)(replacements)
    checks.check("a pair has the larger place and the smaller stamp of its rows")(places())
  }

  private def join(condition: Option[Expression], shown: Seq[Expression] = Both.all): Chain =
    Chain(1, Seq(Join(1, 1, JoinKind.Inner, (2, 2), condition, (None, None), Seq(Edge(Out, None, Nil, shown)))))
  private def side(port: Int): Route = new Route(Edge(Target(1, port, 1), None, Seq(Side(0)), Side.all))

  private def pairs(left: Iterable[Seq[Any]], right: Iterable[Seq[Any]], less: Boolean): Iterable[Seq[Any]] =
    for (l <- left; r <- right if l.head == r.head && (!less || l(1).asInstanceOf[Long] < r(1).asInstanceOf[Long])) yield l ++ r

  private def joins(random: Random, condition: Option[Expression], keys: Int, values: Int): Unit = {
    val levels = new Levels(Seq(Seq(join(condition))), random)
    val left = new Changing(random, side(0), Side, keys, values)
    val right = new Changing(random, side(1), Side, keys, values)
    val found = new Tallies
    var place = 0L
    (1 to 12).foreach { _ =>
      def next(): Long = { place += 1; place }
      found.take(levels.batch(left.changes(random.nextInt(15), () => next()) ++ right.changes(random.nextInt(15), () => next())))
      found.same(Out.operator, Both, pairs(left.rows, right.rows, condition.isDefined), "pairs")
      if (random.nextInt(4) == 0) levels.restart()
    }
    found.take(levels.batch(emptying(left, side(0)) ++ emptying(right, side(1))))
    equal(found.of(Out.operator), Map.empty, "pairs of nothing")
    equal(levels.isEmpty, true, "whether nothing is kept of nothing")
  }

  private def emptying(side: Changing, route: Route): Seq[Array[Byte]] =
    side.held.toSeq.map { case (row, times) => route.envelope(Side.row(row), -times, 0, 1000) }

  /** The same change arrives at both ports. */
  private def selfJoins(random: Random): Unit = {
    val levels = new Levels(Seq(Seq(join(None))), random)
    val both = new Changing(random, side(0), Side, 4, 4)
    val found = new Tallies
    var place = 0L
    (1 to 12).foreach { _ =>
      val changes = both.changes(random.nextInt(15), () => { place += 1; place })
      val again = changes.map { change =>
        val row = Envelope.read(change, new org.apache.spark.sql.catalyst.expressions.UnsafeRow(2))
        side(1).envelope(row, Envelope.weight(change), 0, Envelope.place(change))
      }
      found.take(levels.batch(changes ++ again))
      found.same(Out.operator, Both, pairs(both.rows, both.rows, less = false), "pairs")
    }
  }

  /** The right side has one row for each key, which is a bound for the left rows. */
  private def replacements(random: Random): Unit = {
    val levels = new Levels(Seq(Seq(join(Some(LessThan(Both(1), Both(3))), Side.all))), random)
    val left = new Changing(random, side(0), Side, keys = 2, values = 9)
    val bounds = mutable.Map(0L -> 0L, 1L -> 0L)
    val found = new Tallies
    found.take(levels.batch(bounds.map { case (key, bound) => side(1).envelope(Side.row(Seq(key, bound)), 1, 0, 0) }))
    (1 to 15).foreach { place =>
      found.take(levels.batch(left.changes(random.nextInt(9), () => place) ++ moved(random, bounds, place)))
      found.same(Out.operator, Side, beneath(left, bounds), "rows beneath their bounds")
      val before = beneath(left, bounds).toSet
      val out = levels.batch(moved(random, bounds, place))
      found.take(out)
      found.same(Out.operator, Side, beneath(left, bounds), "rows beneath their bounds")
      val staying = before.intersect(beneath(left, bounds).toSet).map(Side.bytes)
      equal(out.map(Envelope.row(_).toSeq).filter(staying), Nil, "changes of rows that stay")
      if (random.nextInt(4) == 0) levels.restart()
    }
  }

  private def beneath(left: Changing, bounds: mutable.Map[Long, Long]): Iterable[Seq[Any]] =
    left.rows.filter(row => row(1).asInstanceOf[Long] < bounds(row.head.asInstanceOf[Long]))

  private def moved(random: Random, bounds: mutable.Map[Long, Long], place: Long): Seq[Array[Byte]] = {
    val (key, bound) = (random.nextInt(2).toLong, random.nextInt(10).toLong)
    val before = bounds.put(key, bound).get
    Seq((before, -1L), (bound, 1L)).map { case (value, weight) => side(1).envelope(Side.row(Seq(key, value)), weight, 0, place) }
  }

  private def places(): Unit = {
    val levels = new Levels(Seq(Seq(join(None))), new Random(1))
    levels.batch(Seq(side(0).envelope(Side.row(Seq(1L, 1L)), 1, 30, 7)))
    val Seq(pair) = levels.batch(Seq(side(1).envelope(Side.row(Seq(1L, 2L)), 1, 20, 9))): @unchecked
    equal((Envelope.place(pair), Envelope.stamp(pair)), (9L, 20L), "place and stamp")
  }
}
