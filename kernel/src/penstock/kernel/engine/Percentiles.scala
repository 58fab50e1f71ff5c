package penstock.kernel.engine

import java.io.{DataInput, DataOutput}
import java.util.{Comparator, TreeMap}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.expressions.aggregate.PercentileBase
import org.apache.spark.sql.types.DataType
import penstock.kernel.state.Entries

/** `percentile`, `median`, `percentile_cont` and `percentile_disc`, whether rows leave or not: a change costs the change, however large the group.
  *
  * State: a collection, value -> how often, in the order of ranks. For each percentage a *finger*: an object, one of the values, and a number, how many
  * rows come before it. The first number counts the rows in all. A row that comes or goes changes the number of each finger behind it; then the
  * fingers walk to where they are wanted, which is as far as the batch has moved them.
  *
  * The answer is Spark's: its function sees a group of the values about each finger alone, which stand at the ranks that they have in the whole
  * group. `function` is bound to the row. Where `distinct`, a value counts once.
  */
case class PercentileFold(function: PercentileBase, percentages: Seq[Double], distinct: Boolean) extends Fold {
  override def longs: Int = 1 + percentages.length
  override def objects: Int = percentages.length
  override def merges: Boolean = false
  @transient override lazy val collections: Seq[Comparator[Array[Byte]]] = Seq(newOrder)

  private def valueType: DataType = function.child.dataType
  private def newOrder: RankOrder = new RankOrder(valueType, function.reverse)
  @transient private lazy val order = newOrder
  @transient private lazy val held = new UnsafeRow(1)
  @transient private var bytesAt: ValueBytes = _

  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit = ()

  override def keep(g: Gathered, n: Int, o: Int, entries: Array[Entries], row: UnsafeRow, input: Int, weight: Long, place: Long): Unit =
    if (!row.isNullAt(input)) {
      if (bytesAt == null) bytesAt = new ValueBytes(input, valueType)
      val times = frequency(row)
      if (times > 0) change(g, n, o, entries(0), bytesAt(row), times * weight)
    }

  private def frequency(row: UnsafeRow): Long = function.frequencyExpression.eval(row) match {
    case null => 0L
    case number: Number =>
      // Spark's own error.
      if (number.longValue < 0) function.update(function.createAggregationBuffer(), row)
      number.longValue
  }

  private def change(g: Gathered, n: Int, o: Int, values: Entries, value: Array[Byte], weight: Long): Unit = {
    val before = if (distinct) countOf(values.get(value)) else 0L
    Multiset.add(values, value, weight)
    val more = if (distinct) countOf(values.get(value)) - before else weight
    g.numbers(n) += more
    var i = 0
    while (i < percentages.length) {
      val finger = g.things(o + i).asInstanceOf[Array[Byte]]
      if (finger != null && order.compare(value, finger) < 0) g.numbers(n + 1 + i) += more
      i += 1
    }
  }

  /** How many rows an entry stands for. */
  private def countOf(entry: Array[Byte]): Long = if (entry == null) 0L else if (distinct) 1L else Multiset.count(entry)

  override def settle(g: Gathered, n: Int, o: Int, entries: Array[Entries]): Unit = {
    var i = 0
    while (i < percentages.length) {
      val from = g.things(o + i).asInstanceOf[Array[Byte]]
      val finger = walked(entries(0), from, if (from == null) 0L else g.numbers(n + 1 + i), rank(g.numbers(n), percentages(i)))
      g.things(o + i) = finger.value
      g.numbers(n + 1 + i) = finger.before
      i += 1
    }
  }

  /** The rank about which Spark's function looks: it takes this one, or one beside it. */
  private def rank(rows: Long, percentage: Double): Long = ((rows - 1) * percentage).floor.toLong

  /** From a value, which need not be there any more, to the one that has the rank. */
  private def walked(values: Entries, from: Array[Byte], before: Long, rank: Long): Finger =
    if (values.isEmpty) PercentileFold.Nowhere
    else if (rank < before) {
      val cursor = values.before(from)
      var at = before
      while (rank < at && cursor.next()) at -= countOf(cursor.value)
      Finger(cursor.key, at)
    } else {
      val cursor = if (from == null) values.ascending else values.from(from)
      var at = before
      while (cursor.next() && at + countOf(cursor.value) <= rank) at += countOf(cursor.value)
      Finger(cursor.key, at)
    }

  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit = {
    val near = new TreeMap[java.lang.Long, Ranked]()
    if (g.numbers(n) > 0) percentages.indices.foreach { i =>
      look(entries(0), Finger(g.things(o + i).asInstanceOf[Array[Byte]], g.numbers(n + 1 + i)), rank(g.numbers(n), percentages(i)), near)
    }
    buffer.update(at, answer(near, g.numbers(n)))
  }

  /** Finds the values from one rank below to two above: rounding may take Spark's function there. */
  private def look(values: Entries, finger: Finger, rank: Long, near: TreeMap[java.lang.Long, Ranked]): Unit = {
    val below = values.before(finger.value)
    if (rank == finger.before && below.next()) near.put(finger.before - countOf(below.value), Ranked(below.key, finger.before))
    val cursor = values.from(finger.value)
    var at = finger.before
    while (at <= rank + 2 && cursor.next()) {
      val end = at + countOf(cursor.value)
      near.put(at, Ranked(cursor.key, end))
      at = end
    }
  }

  /** Of a group of so many rows. Ranks between those of the values are not asked for; each value takes those before it. */
  private def answer(near: TreeMap[java.lang.Long, Ranked], rows: Long): Any = {
    val small = function.createAggregationBuffer()
    var taken = 0L
    near.forEach { (before, ranked) =>
      val end = if (before == near.lastKey) rows else ranked.end
      val more = end - taken
      held.pointTo(ranked.value, ranked.value.length)
      small.changeValue(held.get(0, valueType), more, _ + more)
      taken = end
    }
    function.eval(small)
  }

  override def write(thing: AnyRef, out: DataOutput): Unit = Extremes.write(thing.asInstanceOf[Array[Byte]], out)
  override def read(in: DataInput): AnyRef = Extremes.read(in)
}

/** A value of a group, and how many rows come before it. */
private final case class Finger(value: Array[Byte], before: Long)

/** A value of a group, and how many rows come before those that follow it. */
private final case class Ranked(value: Array[Byte], end: Long)

object PercentileFold {
  private val Nowhere = Finger(null, 0L)
}
