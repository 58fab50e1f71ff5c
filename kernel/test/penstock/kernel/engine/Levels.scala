package penstock.kernel.engine

import java.util.Random

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression, GenericInternalRow, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.DataType
import penstock.kernel.Checks.equal
import penstock.kernel.state.MapStore
import scala.collection.mutable

/** Columns of rows in checks. A value is what Catalyst has inside: Long, Double, UTF8String, Decimal, ... or null. */
final class Columns(val types: Seq[DataType]) {
  private val projection = UnsafeProjection.create(types.toArray)

  def row(values: Seq[Any]): InternalRow = new GenericInternalRow(values.toArray)
  def unsafe(values: Seq[Any]): UnsafeRow = projection(row(values)).copy()
  def bytes(values: Seq[Any]): Seq[Byte] = unsafe(values).getBytes.toSeq
  def apply(i: Int): Expression = BoundReference(i, types(i), nullable = true)
  def all: Seq[Expression] = types.indices.map(apply)
}

/** Levels of chains, without Spark: between them envelopes are grouped by chain and slot, and arrive in a random order.
  *
  * Operators reach a level as they reach an executor, serialized; `restart` makes everything anew but the pages.
  */
final class Levels(levels: Seq[Seq[Chain]], random: Random, slots: Int = 4, limit: Int = 256, rereads: Boolean = false) {
  private val stores = mutable.Map.empty[(Long, Int), MapStore]
  private var running: Seq[Map[Int, RunningChain]] = started()

  private def started(): Seq[Map[Int, RunningChain]] =
    levels.map(_.map(chain => chain.id -> new RunningChain(Levels.sent(chain), limit)).toMap)

  def restart(): Unit = running = started()

  /** What leaves the last level. */
  def batch(envelopes: Iterable[Array[Byte]]): Seq[Array[Byte]] =
    running.foldLeft(envelopes.toSeq)((arriving, level) => Levels.shuffled(arriving, random).groupBy(Envelope.group(_, slots)).toSeq.flatMap {
      case (group, rows) => level.get((group >>> 32).toInt).fold(rows)(_.run(rows.iterator, pages(group, _), (_, _) => ()).toSeq)
    })

  private def pages(group: Long, position: Int): MapStore = {
    val store = stores.getOrElseUpdate((group, position), new MapStore).begin()
    store.rereads = rereads
    store
  }

  def isEmpty: Boolean = stores.values.forall(_.isEmpty)

  /** How many pages there are, headers left out. */
  def pages: Int = stores.values.map(_.pages.size).sum
}

object Levels {
  def sent[T](thing: T): T = Sent(thing).read()

  def shuffled[T](items: Iterable[T], random: Random): Seq[T] = {
    val list = new java.util.ArrayList[T]()
    items.foreach(list.add)
    java.util.Collections.shuffle(list, random)
    (0 until list.size).map(list.get)
  }
}

/** What envelopes add up to, by target. */
final class Tallies {
  private val held = mutable.Map.empty[(Int, Seq[Byte]), Long]

  def take(envelopes: Iterable[Array[Byte]]): Unit = envelopes.foreach { envelope =>
    val row = (Envelope.operator(envelope), envelope.toSeq.drop(Envelope.rowStart(envelope)))
    held(row) = held.getOrElse(row, 0L) + Envelope.weight(envelope)
    if (held(row) == 0) held.remove(row)
  }

  /** The rows of one target, each as often as it is there. */
  def of(target: Int): Map[Seq[Byte], Long] = held.collect { case ((to, row), weight) if to == target => row -> weight }.toMap

  def same(target: Int, columns: Columns, wanted: Iterable[Seq[Any]], what: => String): Unit = {
    val counted = wanted.toSeq.map(columns.bytes).groupMapReduce(identity)(_ => 1L)(_ + _)
    equal(of(target), counted, s"$what: rows of target $target")
  }
}
