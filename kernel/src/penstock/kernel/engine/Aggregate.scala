package penstock.kernel.engine

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}
import java.util.Comparator
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, JoinedRow, SpecificInternalRow, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.Platform
import penstock.kernel.state.{Entries, State}

/** One fold of an aggregate: where its arguments begin in the row, where the row says whether it counts (FILTER; or -1), and how many columns it
  * fills of the buffer from which the result is made.
  */
case class Folded(fold: Fold, input: Int, filter: Int, slots: Int)

/** How the rows of a key are gathered by the folds of an aggregate; shared by the operator and the combiner before it.
  *
  * The first number counts the rows: a group without rows is gone.
  */
case class Gathering(folds: Seq[Folded], width: Int) {
  @transient private lazy val all = folds.toArray
  val longs: Int = 1 + folds.map(_.fold.longs).sum
  val objects: Int = folds.map(_.fold.objects).sum
  val merges: Boolean = folds.forall(_.fold.merges)
  /** Whether a key needs collections of its state. */
  val keeps: Boolean = folds.exists(_.fold.collections.nonEmpty)

  def fresh(): Gathered = new Gathered(longs, objects)

  def add(g: Gathered, row: UnsafeRow, weight: Long): Unit = add(g, 0, 0, row, weight)

  /** The same where the key's numbers and objects begin elsewhere. */
  def add(g: Gathered, numbers: Int, things: Int, row: UnsafeRow, weight: Long): Unit = {
    g.numbers(numbers) += weight
    var n = numbers + 1
    var o = things
    var i = 0
    while (i < all.length) {
      val each = all(i)
      if (each.filter < 0 || Gathering.holds(row, each.filter)) each.fold.add(g, n, o, row, each.input, weight)
      n += each.fold.longs
      o += each.fold.objects
      i += 1
    }
  }

  def merge(g: Gathered, other: Gathered): Unit = {
    g.numbers(0) += other.numbers(0)
    var n = 1
    var o = 0
    var i = 0
    while (i < all.length) {
      all(i).fold.merge(g, n, o, other)
      n += all(i).fold.longs
      o += all(i).fold.objects
      i += 1
    }
  }

  /** `[numbers][objects, each as its fold writes it]` */
  def write(g: Gathered): Array[Byte] = write(g, 0, 0)

  /** The same where the key's numbers and objects begin elsewhere. */
  def write(g: Gathered, numbers: Int, things: Int): Array[Byte] = {
    val bytes = new Array[Byte](longs * 8)
    Platform.copyMemory(g.numbers, Platform.LONG_ARRAY_OFFSET + 8L * numbers, bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length)
    if (objects == 0) bytes else withObjects(g, things, bytes)
  }

  private def withObjects(g: Gathered, things: Int, numbers: Array[Byte]): Array[Byte] = {
    val bytes = new ByteArrayOutputStream(numbers.length + 64)
    val out = new DataOutputStream(bytes)
    out.write(numbers)
    eachObject((fold, o) => fold.write(g.things(things + o), out))
    // Rows of Spark's are multiples of eight bytes; so is what travels in their stead.
    while (out.size() % 8 != 0) out.writeByte(0)
    bytes.toByteArray
  }

  def read(bytes: Array[Byte], start: Int, length: Int): Gathered = {
    val g = fresh()
    Platform.copyMemory(bytes, Platform.BYTE_ARRAY_OFFSET + start, g.numbers, Platform.LONG_ARRAY_OFFSET, 8L * longs)
    if (objects > 0) {
      val in = new DataInputStream(new ByteArrayInputStream(bytes, start + longs * 8, length - longs * 8))
      eachObject((fold, o) => g.things(o) = fold.read(in))
    }
    g
  }

  private def eachObject(action: (Fold, Int) => Unit): Unit = {
    var o = 0
    var i = 0
    while (i < all.length) {
      var k = 0
      while (k < all(i).fold.objects) {
        action(all(i).fold, o)
        o += 1
        k += 1
      }
      i += 1
    }
  }
}

object Gathering {
  def holds(row: UnsafeRow, at: Int): Boolean = !row.isNullAt(at) && row.getBoolean(at)
}

/** Keeps an aggregate's answer for each group.
  *
  * In: changes of one group's rows, in any order, some folded together already by the combiner.
  * State: what the folds gathered; for folds that need them, collections of values. Absent when the group has no rows.
  * Out: at most two changes per batch, the retraction before the assertion. Without grouping there is an answer from the first batch on.
  */
case class Aggregate(
    id: Int, keyWidth: Int, gathering: Gathering, buffer: Seq[DataType], result: Seq[Expression], ordered: Boolean, edges: Seq[Edge],
    override val timing: Option[Timing] = None)
    extends Patient {
  override def ticks: Boolean = keyWidth == 0
  override def orders: Array[Comparator[Array[Byte]]] = gathering.folds.flatMap(_.fold.collections).toArray

  @transient private lazy val folds = gathering.folds.toArray
  @transient private lazy val answers = UnsafeProjection.create(result)
  @transient private lazy val filled = new SpecificInternalRow(buffer)
  @transient private lazy val row = new UnsafeRow(gathering.width)
  @transient private lazy val joined = new JoinedRow()

  override def run(key: UnsafeRow, rows: Rows, state: State, out: Output): Unit = {
    val gathered = known(state)
    val entries = entriesOf(state)
    val before = if (state.value == null) null else answer(key, gathered, entries).copy()
    val after = if (taken(gathered, rows, state, entries)) answer(key, gathered, entries) else null
    if (before != after) {
      if (before != null) out.emit(before, -1, rows.lastStamp, rows.lastPlace)
      if (after != null) out.emit(after, 1, rows.lastStamp, rows.lastPlace)
    }
  }

  override def gather(key: UnsafeRow, rows: Rows, state: State): Unit = taken(known(state), rows, state, entriesOf(state))

  override def show(key: UnsafeRow, state: State, out: Output): Unit =
    if (state.value != null) out.emit(answer(key, known(state), entriesOf(state)), 1, Long.MinValue, Long.MinValue)

  private[engine] def known(state: State): Gathered = {
    val bytes = state.value
    if (bytes == null) gathering.fresh() else gathering.read(bytes, 0, bytes.length)
  }

  /** Takes in the rows; whether the group is there afterwards. */
  private[engine] def taken(gathered: Gathered, rows: Rows, state: State, entries: Array[Array[Entries]]): Boolean = {
    if (ordered) rows.sortByPlace()
    gather(gathered, rows)
    if (gathering.keeps) {
      // Rows that come before rows that go: nothing is taken away that is not there yet.
      keep(gathered, rows, entries, coming = true)
      keep(gathered, rows, entries, coming = false)
      settle(gathered, entries)
    }
    val there = gathered.numbers(0) != 0 || keyWidth == 0
    state.value = if (there) gathering.write(gathered) else null
    there
  }

  private def gather(g: Gathered, rows: Rows): Unit = {
    var i = 0
    while (i < rows.size) {
      val envelope = rows(i)
      Envelope.kind(envelope) match {
        case Envelope.Row => gathering.add(g, Envelope.read(envelope, row), Envelope.weight(envelope))
        case Envelope.Partial => gathering.merge(g, gathering.read(envelope, Envelope.rowStart(envelope), Envelope.rowLength(envelope)))
        case _ => ()
      }
      i += 1
    }
  }

  private def keep(g: Gathered, rows: Rows, entries: Array[Array[Entries]], coming: Boolean): Unit = {
    var i = 0
    while (i < rows.size) {
      val envelope = rows(i)
      if (Envelope.kind(envelope) == Envelope.Row && Envelope.weight(envelope) > 0 == coming) keep(g, envelope, entries)
      i += 1
    }
  }

  private def keep(g: Gathered, envelope: Array[Byte], entries: Array[Array[Entries]]): Unit = {
    Envelope.read(envelope, row)
    var n = 1
    var o = 0
    var i = 0
    while (i < folds.length) {
      val each = folds(i)
      if (entries(i).length > 0 && (each.filter < 0 || Gathering.holds(row, each.filter)))
        each.fold.keep(g, n, o, entries(i), row, each.input, Envelope.weight(envelope), Envelope.place(envelope))
      n += each.fold.longs
      o += each.fold.objects
      i += 1
    }
  }

  private def settle(g: Gathered, entries: Array[Array[Entries]]): Unit = {
    var n = 1
    var o = 0
    var i = 0
    while (i < folds.length) {
      folds(i).fold.settle(g, n, o, entries(i))
      n += folds(i).fold.longs
      o += folds(i).fold.objects
      i += 1
    }
  }

  private[engine] def entriesOf(state: State): Array[Array[Entries]] = {
    var next = 0
    folds.map { each =>
      val mine = each.fold.collections.indices.map(i => state.entries(next + i)).toArray
      next += mine.length
      mine
    }
  }

  private[engine] def answer(key: InternalRow, g: Gathered, entries: Array[Array[Entries]]): UnsafeRow = {
    var n = 1
    var o = 0
    var at = 0
    var i = 0
    while (i < folds.length) {
      val fold = folds(i).fold
      fold.fill(g, n, o, entries(i), filled, at)
      n += fold.longs
      o += fold.objects
      at += folds(i).slots
      i += 1
    }
    answers(joined(key, filled))
  }
}
