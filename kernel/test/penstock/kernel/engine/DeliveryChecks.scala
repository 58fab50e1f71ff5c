package penstock.kernel.engine

import java.nio.{ByteBuffer, ByteOrder}
import java.util.Random

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.expressions.aggregate.{Average, BitXorAgg, CollectList, Count, Max, Min, Sum}
import org.apache.spark.sql.types.{BooleanType, DoubleType, LongType}
import penstock.kernel.Checks
import penstock.kernel.Checks.{equal, holds}
import scala.collection.mutable

/** How rows get to operators: through the combiner, from one operator of a chain to the next, past levels that do not know them. */
object DeliveryChecks {
  private val Source = new Columns(Seq(LongType, DoubleType, BooleanType, LongType))
  private val Sums = Kind("sums", DoubleType, random => random.nextInt(1000) / 7.0,
    Seq(Asked(v => Count(v), null), Asked(v => new Sum(v), null), Asked(v => new Average(v), null)))
  private val Growing = Kind("growing", DoubleType, random => Seq(0.0, -0.0, Double.NaN, 1.5)(random.nextInt(4)),
    Asked(v => Min(v), null) +: Asked(v => Max(v), null) +: Sums.asked)

  def run(checks: Checks): Unit = {
    checks.seeded("an aggregate answers the same, bit by bit, with a combiner and without", 10)(combined(Sums, _, growing = false))
    checks.seeded("so it does where rows only come", 10)(combined(Growing, _, growing = true))
    checks.check("a combiner that does not pay stops, one that is full gives out what it has")(manyKeys())
    checks.seeded("operators in a chain answer as they do on levels of their own", 10)(chained)
    checks.seeded("lists over a join are right in whatever order rows arrive", 30)(listsOverJoins)
    checks.check("what a level does not know passes through")(passing())
    checks.check("an envelope is laid out as docs/formats/envelope.md says")(layout())
  }

  private def feed(aggregate: Aggregated, rows: Seq[Seq[Any]], combining: Boolean): Seq[Array[Byte]] = {
    val gathering = if (combining) Some(aggregate.plan.gathering) else None
    val entry = Levels.sent(Entry(Seq(aggregate.edge), Seq(gathering), deleted = 2, place = 3, stamp = -1, Nil, 4))
    new FeedIterator(new EntryRoutes(entry), rows.iterator.map(Source.row), first = false).map(_.getBinary(0)).toList
  }

  private def combined(kind: Kind, random: Random, growing: Boolean): Unit = {
    val aggregate = new Aggregated(kind, growing)
    holds(aggregate.plan.gathering.merges, "these aggregates can be combined")
    val both = Seq.fill(2)(new Levels(Seq(Seq(Chain(1, Seq(aggregate.operator)))), random))
    val groups = new Groups(kind, random, growing)
    (1 to 10).foreach { _ =>
      val rows = mutable.ArrayBuffer.empty[Seq[Any]]
      groups.changes(random.nextInt(60), (row, weight, place) => { (1L to math.abs(weight)).foreach(_ => rows += row ++ Seq(weight < 0, place)); null })
      val tasks = Levels.shuffled(rows, random).grouped(1 + random.nextInt(20)).toSeq
      val plain = both(0).batch(tasks.flatMap(feed(aggregate, _, combining = false)))
      val folded = both(1).batch(tasks.flatMap(feed(aggregate, _, combining = true)))
      equal(folded.map(_.toSeq).toSet, plain.map(_.toSeq).toSet, "what left the level")
    }
  }

  private def manyKeys(): Unit = {
    val aggregate = new Aggregated(Sums, growing = false)
    def kinds(rows: Iterator[Seq[Any]]): Map[Short, Long] = {
      val entry = Entry(Seq(aggregate.edge), Seq(Some(aggregate.plan.gathering)), 2, 3, -1, Nil, 4)
      val counts = mutable.Map.empty[Short, Long].withDefaultValue(0L)
      val found = mutable.Map.empty[Seq[Byte], Long].withDefaultValue(0L)
      new FeedIterator(new EntryRoutes(entry), rows.map(Source.row), first = false).map(_.getBinary(0)).foreach { envelope =>
        val partial = Envelope.kind(envelope) == Envelope.Partial
        counts(Envelope.kind(envelope)) += 1
        found(envelope.toSeq.slice(Envelope.Header, Envelope.rowStart(envelope))) +=
          (if (partial) aggregate.plan.gathering.read(envelope, Envelope.rowStart(envelope), Envelope.rowLength(envelope)).numbers(0) else 1L)
      }
      equal(found.values.toSet.size, 1, "different numbers of rows among keys that have equally many")
      counts.toMap
    }
    val apart = kinds(Iterator.tabulate(40_000)(i => Seq[Any](i.toLong, 1.0, false, i.toLong)))
    equal(apart(Envelope.Row), 20_000L, "rows that went as they were")
    val twice = kinds(Iterator.tabulate(400_000)(i => Seq[Any](i / 2L, 1.0, false, i.toLong)))
    equal(twice.keySet, Set(Envelope.Partial), "kinds of envelopes where every key comes twice")
  }

  /** A table, a stream joined to it, and sums by the same key: all three are also views. */
  private final class Shop(random: Random, together: Boolean) {
    private val Table = new Columns(Seq(LongType, LongType))
    private val Stream = new Columns(Seq(LongType, DoubleType))
    private val Pair = new Columns(Table.types ++ Stream.types)
    private val sums = new Aggregated(Sums, growing = false)
    private def chain(operator: Int): Int = if (together) 1 else operator
    private val upsert = Upsert(1, 1, 2, Seq(Edge(Target(2, 0, chain(2)), None, Seq(Table(0)), Table.all), Edge(Target(101, 0, 101), None, Nil, Table.all)))
    private val join = Join(2, 1, JoinKind.Inner, (2, 2), None, (None, None), Seq(Edge(Target(3, 0, chain(3)), None, Seq(Pair(0)), sums.plan.inputs.map(_ => Pair(3))), Edge(Target(102, 0, 102), None, Nil, Pair.all)))
    private val aggregate = sums.operator.asInstanceOf[Aggregate].copy(id = 3)
    private val levels = new Levels(
      if (together) Seq(Seq(Chain(1, Seq(upsert, join, aggregate)))) else Seq(Seq(Chain(1, Seq(upsert))), Seq(Chain(2, Seq(join))), Seq(Chain(3, Seq(aggregate)))), random)
    private val toTable = new Route(Edge(Target(1, 0, chain(1)), None, Seq(Table(0)), Table.all))
    private val toJoin = new Route(Edge(Target(2, 1, chain(2)), None, Seq(Stream(0)), Stream.all))

    def batch(table: Seq[(Seq[Any], Long)], stream: Seq[Seq[Any]], place: Long): Set[Seq[Byte]] = {
      val records = table.zipWithIndex.map { case ((row, weight), i) => toTable.envelope(Table.row(row), weight, 0, place + i) }
      val rows = stream.zipWithIndex.map { case (row, i) => toJoin.envelope(Stream.row(row), 1, 0, place + 1000 + i) }
      // How envelopes find their operators differs; what they say must not.
      levels.batch(records ++ rows).groupMapReduce(e => (Envelope.operator(e), e.toSeq.drop(Envelope.rowStart(e))))(Envelope.weight)(_ + _)
        .collect { case ((to, row), weight) if weight != 0 => Seq(to.toByte, weight.toByte) ++ row }.toSet
    }
  }

  private def chained(random: Random): Unit = {
    val shops = Seq(new Shop(random, together = true), new Shop(random, together = false))
    (1 to 10).foreach { batch =>
      val table = Seq.fill(random.nextInt(8))((Seq[Any](random.nextInt(6).toLong, random.nextInt(3).toLong), if (random.nextInt(3) == 0) -1L else 1L))
      val stream = Seq.fill(random.nextInt(8))(Seq[Any](random.nextInt(6).toLong, random.nextInt(9) / 7.0))
      val Seq(together, apart) = shops.map(_.batch(table, stream, batch * 10_000L)): @unchecked
      equal(together, apart, s"batch $batch")
    }
  }

  /** Both rows of a pair may change in one batch: then the pair comes and leaves at the same place. */
  private def listsOverJoins(random: Random): Unit = {
    val side = new Columns(Seq(LongType, LongType))
    val pair = new Columns(side.types ++ side.types)
    val lists = new Aggregated(Kind("lists", LongType, null, Seq(Asked(v => CollectList(v), null))), growing = false)
    val join = Join(2, 1, JoinKind.Inner, (2, 2), None, (None, None), Seq(Edge(Target(1, 0, 1), None, Seq(pair(1)), Seq(pair(3)))))
    val levels = new Levels(Seq(Seq(Chain(2, Seq(join))), Seq(Chain(1, Seq(lists.operator)))), random)
    val Seq(left, right) = Seq(0, 1).map(port => new Changing(random, new Route(Edge(Target(2, port, 2), None, Seq(side(0)), side.all)), side, 3, 3)): @unchecked
    val found = new Tallies
    var place = 0L
    (1 to 10).foreach { _ =>
      def next(): Long = { place += 1; place }
      found.take(levels.batch(Levels.shuffled(Seq(left, right), random).flatMap(_.changes(random.nextInt(8), () => next()))))
      val wanted = for (l <- left.rows.toSeq; r <- right.rows if l.head == r.head) yield (l(1), r(1).asInstanceOf[Long])
      equal(listed(found), wanted.groupMap(_._1)(_._2).view.mapValues(_.sorted).toMap, "lists, sorted")
    }
  }

  private def listed(found: Tallies): Map[Any, Seq[Long]] = {
    val row = new UnsafeRow(2)
    found.of(FoldChecks.Out.operator).map { case (bytes, times) =>
      equal(times, 1L, "how often an answer is there")
      row.pointTo(bytes.toArray, bytes.length)
      row.getLong(0) -> row.getArray(1).toLongArray().toSeq.sorted
    }
  }

  private def passing(): Unit = {
    val level = new Level(Map(1 -> Sent(Chain(1, Nil))), 4096, new OpenWindows)
    val rows = Seq.fill(3)(Envelope.of(Target(7, 0, 7), Envelope.Row, FeedIterator.Nothing, FeedIterator.Nothing))
    equal(level.handleInputRows(7L << 32, rows.iterator, null).toSeq, rows, "what came out")
  }

  private def layout(): Unit = {
    val columns = new Columns(Seq(LongType))
    val (key, row) = (columns.unsafe(Seq(5L)), columns.unsafe(Seq(6L)))
    val envelope = Envelope.stamped(Envelope.of(Target(3, 1, 9), Envelope.Partial, key, row), -2, 11, 12)
    val read = ByteBuffer.wrap(envelope).order(ByteOrder.LITTLE_ENDIAN)
    val header = (read.getInt(0), read.getShort(4), read.getShort(6), read.getLong(8), read.getLong(24), read.getLong(32), read.getInt(40), read.getInt(44))
    equal(header, (3, 1.toShort, 1.toShort, -2L, 11L, 12L, 16, 9), "header")
    equal(read.getLong(16), Envelope.hashOf(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes), "hash")
    equal(envelope.toSeq.drop(48), key.getBytes.toSeq ++ row.getBytes.toSeq, "key and row")
    equal(Envelope.group(envelope, 64), (9L << 32) | (read.getLong(16) & 63), "group")
  }
}
