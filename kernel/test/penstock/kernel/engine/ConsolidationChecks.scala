package penstock.kernel.engine

import java.util.Random

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.types.{LongType, StructType}
import penstock.kernel.Checks
import penstock.kernel.Checks.{equal, holds}
import scala.util.Try

/** Envelopes of a batch put together: by row, by key, in an order that does not depend on how they arrived. */
object ConsolidationChecks {
  private val Row = new Columns(Seq(LongType, LongType))
  private val Schema = StructType.fromDDL("k BIGINT, v BIGINT")
  private val Weights = Seq(1L, -1L, 2L, -2L)
  private val Arriving = new Route(Edge(Target(5, 0, 5), None, Seq(Row(0)), Row.all))

  def run(checks: Checks): Unit = {
    checks.seeded("rows that came and left are gone, the others have one sign", 50)(rows)
    checks.seeded("the order of rows is that of place and bytes, and what comes stands before what leaves", 50)(order)
    checks.seeded("a bag's changes are consolidated", 50)(bags)
    checks.seeded("under a key the row that left and the row that came are one change", 50)(keyed)
    checks.check("two rows that come under one key do not fit")(misfit())
  }

  private def some(random: Random, count: Int): Seq[Array[Byte]] =
    Seq.fill(count)(Arriving.envelope(Row.row(Seq(random.nextInt(3).toLong, random.nextInt(3).toLong)), Weights(random.nextInt(4)), 0, random.nextInt(3).toLong))

  private def tally(envelopes: Iterable[Array[Byte]]): Map[Seq[Byte], Long] =
    envelopes.groupMapReduce(e => Bytes.ofRow(e).bytes.toSeq)(Envelope.weight)(_ + _).filter(_._2 != 0)

  private def arrived(envelopes: Iterable[Array[Byte]]): Rows = {
    val rows = new Rows
    envelopes.foreach(envelope => rows.add(envelope.clone()))
    rows
  }

  private def listed(rows: Rows): Seq[Seq[Byte]] = (0 until rows.size).map(rows(_).toSeq)

  private def rows(random: Random): Unit = {
    val envelopes = some(random, random.nextInt(20))
    val found = Seq.fill(2)(arrived(Levels.shuffled(envelopes, random)))
    found.foreach(_.consolidate())
    equal(listed(found(0)), listed(found(1)), "rows in another order of arrival")
    equal(listed(found(0)).map(_.toArray).map(e => Bytes.ofRow(e).bytes.toSeq -> Envelope.weight(e)).toMap, tally(envelopes), "weights")
    holds(listed(found(0)).map(_.drop(Envelope.Header)).distinct.size == found(0).size, "a row occurs twice")
  }

  private def order(random: Random): Unit = {
    val envelopes = some(random, random.nextInt(20))
    val found = Seq.fill(2)(arrived(Levels.shuffled(envelopes, random)))
    found.foreach(_.sortByPlace())
    equal(listed(found(0)), listed(found(1)), "rows in another order of arrival")
    val keys = listed(found(0)).map(_.toArray).map(e => (Envelope.place(e), e.toSeq.drop(Envelope.Header).map(_ & 0xff), -Envelope.weight(e)))
    import scala.math.Ordering.Implicits.seqOrdering
    equal(keys, keys.sorted, "places, bytes and weights")
  }

  private def consolidated(sink: Sink, envelopes: Iterable[Array[Byte]]): Seq[(Option[Seq[Byte]], Option[Seq[Byte]], Long)] = {
    val changes = new Changes(sink)
    envelopes.foreach(changes.add)
    changes.consolidated().toSeq.map(change => (Option(change.after).map(_.toSeq), Option(change.before).map(_.toSeq), change.times))
  }

  private def bags(random: Random): Unit = {
    val sink = Sink(5, "bag", Schema, Nil, Nil)
    val envelopes = some(random, random.nextInt(20))
    val found = Seq.fill(2)(consolidated(sink, Levels.shuffled(envelopes, random)))
    equal(found(0), found(1), "changes in another order of arrival")
    val weights = found(0).map { case (after, before, times) => after.orElse(before).get -> (if (after.isDefined) times else -times) }
    equal(weights.toMap, tally(envelopes), "weights")
    equal(weights.size, weights.toMap.size, "changes of a row")
  }

  /** One row under each key before, and one or none after, by way of others. */
  private def keyed(random: Random): Unit = {
    val sink = Sink(5, "keyed", Schema, Seq(0), Seq[Expression](Row(0)))
    val states = Seq.fill(4)((0L until 6L).flatMap(k => if (random.nextInt(3) == 0) None else Some(k -> random.nextInt(3).toLong)).toMap)
    val steps = states.zip(states.tail).flatMap { case (old, next) => old.toSeq.map((_, -1L)) ++ next.toSeq.map((_, 1L)) }
    val envelopes = steps.map { case ((k, v), weight) => Arriving.envelope(Row.row(Seq(k, v)), weight, 0, 0) }
    val found = Seq.fill(2)(consolidated(sink, Levels.shuffled(envelopes, random)))
    equal(found(0), found(1), "changes in another order of arrival")
    def row(state: Map[Long, Long], k: Long): Option[Seq[Byte]] = state.get(k).map(v => Row.bytes(Seq(k, v)))
    val wanted = (0L until 6L).map(k => (row(states.last, k), row(states.head, k), 1L)).filter(change => change._1 != change._2)
    equal(found(0).toSet, wanted.toSet, "changes")
    equal(found(0).size, wanted.size, "how many changes")
  }

  private def misfit(): Unit = {
    val sink = Sink(5, "keyed", Schema, Seq(0), Seq[Expression](Row(0)))
    val two = Seq(1L, 2L).map(v => Arriving.envelope(Row.row(Seq(7L, v)), 1, 0, 0))
    holds(Try(consolidated(sink, two)).isFailure, "two rows under one key were taken")
  }
}
