package penstock.kernel.engine

import java.util.Random

import org.apache.spark.sql.catalyst.expressions.{GreaterThan, Literal}
import org.apache.spark.sql.types.{IntegerType, LongType, StringType}
import org.apache.spark.unsafe.types.UTF8String
import penstock.kernel.Checks
import penstock.kernel.Checks.{equal, holds}
import scala.collection.mutable

/** Tables with a key, bags, and views with a declared key: records in, changes out. */
object TableChecks {
  private val Row = new Columns(Seq(LongType, LongType, StringType))
  private val Whole = Target(100, 0, 100)
  private val Large = Target(101, 0, 101)
  private val Letters = Target(102, 0, 102)
  private val Texts = Array("a", "b", "", null).map(text => if (text == null) null else UTF8String.fromString(text))

  def run(checks: Checks): Unit = {
    checks.seeded("a table holds the newest record of every key", 20)(upserts)
    checks.seeded("a table keeps no rows that nobody takes", 20)(unwanted)
    checks.seeded("a bag holds each row as often as it was added, and returns deletions that find nothing", 20)(bags)
    checks.seeded("a view with a declared key has one row under each, or says which key has several", 20)(uniques)
  }

  /** To one target whole, to another its third column, where the second is larger than 2. */
  private def edges: Seq[Edge] = Seq(
    Edge(Whole, None, Seq(Row(0)), Row.all),
    Edge(Large, Some(GreaterThan(Row(1), Literal(2L))), Nil, Seq(Row(2))))
  private val Third = new Columns(Seq(StringType))

  private def large(rows: Iterable[Seq[Any]]): Iterable[Seq[Any]] = rows.filter(row => row(1) != null && row(1).asInstanceOf[Long] > 2).map(_.drop(2))

  private def row(random: Random, keys: Int): Seq[Any] =
    Seq(random.nextInt(keys).toLong, if (random.nextInt(5) == 0) null else random.nextInt(5).toLong, Texts(random.nextInt(Texts.length)))

  private def upserts(random: Random): Unit = {
    val levels = new Levels(Seq(Seq(Chain(1, Seq(Upsert(1, 1, 3, edges))))), random)
    val arriving = new Route(Edge(Target(1, 0, 1), None, Seq(Row(0)), Row.all))
    val wanted = mutable.Map.empty[Any, Seq[Any]]
    val found = new Tallies
    var place = 0L
    (1 to 15).foreach { _ =>
      val records = Seq.fill(random.nextInt(40)) {
        val record = row(random, keys = 25)
        place += 1
        val gone = random.nextInt(3) == 0
        if (gone) wanted.remove(record.head) else wanted(record.head) = record
        arriving.envelope(Row.row(record), if (gone) -1 else 1, 0, place)
      }
      val out = levels.batch(records)
      atMostTwo(out)
      found.take(out)
      found.same(Whole.operator, Row, wanted.values, "the table")
      found.same(Large.operator, Third, large(wanted.values), "what is large in it")
      if (random.nextInt(4) == 0) levels.restart()
    }
  }

  private def unwanted(random: Random): Unit = {
    val levels = new Levels(Seq(Seq(Chain(1, Seq(Upsert(1, 1, 3, edges.tail))))), random)
    val arriving = new Route(Edge(Target(1, 0, 1), None, Seq(Row(0)), Row.all))
    val wanted = mutable.Map.empty[Any, Seq[Any]]
    val found = new Tallies
    (1 to 15).foreach { place =>
      val record = row(random, keys = 3)
      wanted(record.head) = record
      found.take(levels.batch(Seq(arriving.envelope(Row.row(record), 1, 0, place))))
      found.same(Large.operator, Third, large(wanted.values), "what is large in the table")
      equal(levels.isEmpty, large(wanted.values).isEmpty, "whether nothing is kept")
      if (random.nextInt(4) == 0) levels.restart()
    }
  }

  /** The changes of a key in one batch: one of each sign, the retraction first. */
  private def atMostTwo(out: Seq[Array[Byte]]): Unit =
    out.filter(Envelope.operator(_) == Whole.operator).groupBy(Envelope.hash).values.foreach { changes =>
      val weights = changes.map(Envelope.weight)
      holds(Seq(Seq(1L), Seq(-1L), Seq(-1L, 1L)).contains(weights), s"changes of one key with weights $weights")
    }

  private def bags(random: Random): Unit = {
    val record = new Columns(Row.types ++ Seq(IntegerType, LongType))
    val letters = Edge(Letters, None, Nil, Seq(record(4)))
    val levels = new Levels(Seq(Seq(Chain(1, Seq(Bag(1, 3, edges, letters))))), random)
    val arriving = new Route(Edge(Target(1, 0, 1), None, Row.all, Seq(record(3), record(4))))
    val wanted = mutable.ArrayBuffer.empty[Seq[Any]]
    val returned = mutable.ArrayBuffer.empty[Seq[Any]]
    val found = new Tallies
    var place = 0L
    (1 to 15).foreach { _ =>
      val records = Seq.fill(random.nextInt(40)) {
        val values = row(random, keys = 3)
        place += 1
        val gone = random.nextInt(5) < 2
        if (!gone) wanted += values
        else if (wanted.contains(values)) wanted -= values
        else returned += Seq(place)
        arriving.envelope(record.row(values ++ Seq[Any](0, place)), if (gone) -1 else 1, 0, place)
      }
      found.take(levels.batch(records))
      found.same(Whole.operator, Row, wanted, "the bag")
      found.same(Large.operator, Third, large(wanted), "what is large in it")
      found.same(Letters.operator, new Columns(Seq(LongType)), returned, "dead letters")
      if (random.nextInt(4) == 0) levels.restart()
    }
  }

  private def uniques(random: Random): Unit = {
    val key = new Columns(Seq(LongType))
    val levels = new Levels(Seq(Seq(Chain(1, Seq(Unique(1, 1, 3, edges, Edge(Letters, None, Nil, key.all)))))), random)
    val arriving = new Route(Edge(Target(1, 0, 1), None, Seq(Row(0)), Row.all))
    val held = mutable.Map.empty[Any, Seq[Any]]
    val found = new Tallies
    (1 to 15).foreach { batch =>
      val changes = Levels.shuffled(0L until 20L, random).take(random.nextInt(12)).flatMap(replaced(_, held, random))
      found.take(levels.batch(changes.map { case (values, weight) => arriving.envelope(Row.row(values), weight, 0, batch) }))
      found.same(Whole.operator, Row, held.values, "the view")
      equal(found.of(Letters.operator), Map.empty, "keys with several rows")
    }
    val several = Seq(Seq[Any](99L, 1L, null), Seq[Any](99L, 2L, null)).map(values => arriving.envelope(Row.row(values), 1, 0, 99))
    found.take(levels.batch(several))
    found.same(Letters.operator, key, Seq(Seq(99L)), "keys with several rows")
  }

  /** What is under the key leaves, something else may come; now and then a third row comes and leaves within the batch. */
  private def replaced(key: Long, held: mutable.Map[Any, Seq[Any]], random: Random): Seq[(Seq[Any], Long)] = {
    val leaving = held.remove(key).map((_, -1L))
    if (random.nextBoolean()) held(key) = key +: row(random, keys = 1).tail
    val passing = if (random.nextInt(3) == 0) Seq(1L, -1L).map((Seq[Any](key, 77L, null), _)) else Nil
    leaving.toSeq ++ held.get(key).map((_, 1L)) ++ passing
  }
}
