package penstock.kernel.engine

import java.util.{Arrays, Comparator, LinkedHashMap => JavaMap}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, JoinedRow, UnsafeProjection, UnsafeRow}
import penstock.kernel.state.State

/** Keeps the window functions of each partition.
  *
  * In: changes of one partition's rows. A row that is there several times has as many positions, one beside the other.
  * State: collection 0, the rows in `order`, each with its tally, what its running frames have gathered, and the columns of its frames.
  * Out: the row and its values, for each row whose values have changed; retractions before assertions. The place is that of the last
  * change, the stamp that of the row itself. Where frames are ranges of time, rows go when no frame can reach them, and may be shown only when
  * their own is complete.
  *
  * `values` are bound to the row's columns, followed by the columns of each frame.
  */
final case class Window(
    id: Int, keyWidth: Int, order: RowOrder, frames: Seq[Framed], values: Seq[Expression], edges: Seq[Edge],
    override val timing: Option[Timing] = None, dating: Option[Dating] = None, ages: Option[Ages] = None)
    extends Dated {
  override def orders: Array[Comparator[Array[Byte]]] = Array(order)

  @transient private lazy val sweeps = frames.zipWithIndex.map { case (framed, i) => Sweep.of(framed, i, order) }
  @transient private lazy val row = new UnsafeRow(order.width)
  @transient private lazy val answer = new WindowAnswer(frames, values)
  @transient private lazy val made = new UnsafeRow(values.length)
  @transient private lazy val joined = new JoinedRow()
  /** How often the columns of a row were computed since the operator began to work. */
  @transient private[engine] var evaluated = 0L

  override def run(key: UnsafeRow, rows: Rows, state: State, out: Output): Unit = {
    rows.consolidate()
    if (rows.size > 0) {
      val place = rows.lastPlace
      changedIn(state, rows).changed((bytes, before, now) => differences(bytes, before, now, place, out))
    }
  }

  @transient private lazy val timeline = new Timeline(ages.get, order, lasting = true)
  private val waits = dating.exists(_.waits)

  override def run(key: UnsafeRow, rows: Rows, state: State, before: Long, now: Long, deadline: Deadline, out: Output): Unit = {
    val held = state.entries(0)
    val from = timeline.deadline(held, before, waits)
    if (!waits) run(key, rows, state, out)
    else {
      rows.consolidate()
      val partition = changedIn(state, rows)
      val place = rows.lastPlace
      partition.changed((bytes, old, made) => differences(bytes, ifOver(bytes, old, before), ifOver(bytes, made, now), place, out))
      timeline.each(held, before, now) { (_, at) =>
        if (!partition.hasChanged(at.key)) differences(at.key, null, at.value, Tally.place(at.value), out)
      }
    }
    timeline.free(held, now)
    deadline.move(from, timeline.deadline(held, now, waits))
  }

  private def ifOver(bytes: Array[Byte], kept: Array[Byte], watermark: Long): Array[Byte] =
    if (kept == null) null
    else {
      row.pointTo(bytes, bytes.length)
      if (timeline.isOver(row, watermark)) kept else null
    }

  private def changedIn(state: State, rows: Rows): Partition = {
    val partition = new Partition(state.entries(0), frames.length)
    if (rows.size > 0) {
      val changed = change(partition, rows)
      sweeps.foreach(_.sweep(partition, changed))
      evaluated += partition.evaluated
    }
    partition
  }

  private def change(partition: Partition, rows: Rows): Array[Array[Byte]] = {
    val envelopes = Array.tabulate(rows.size)(rows(_))
    val changed = envelopes.map(envelope => Arrays.copyOfRange(envelope, Envelope.rowStart(envelope), envelope.length))
    envelopes.indices.foreach(i => partition.change(changed(i), envelopes(i)))
    Arrays.sort(changed, (a: Array[Byte], b: Array[Byte]) => order.total(a, b))
    changed
  }

  private def differences(bytes: Array[Byte], before: Array[Byte], now: Array[Byte], place: Long, out: Output): Unit =
    if ((before != null || now != null) && !answer.same(before, now)) {
      row.pointTo(bytes, bytes.length)
      val weights = new JavaMap[Bytes, Array[Long]]()
      if (before != null) answer.count(row, before, -1, weights)
      if (now != null) answer.count(row, now, 1, weights)
      weights.forEach((values, weight) => if (weight(0) < 0) emit(values, weight(0), Tally.stamp(before), place, out))
      weights.forEach((values, weight) => if (weight(0) > 0) emit(values, weight(0), Tally.stamp(now), place, out))
    }

  private def emit(values: Bytes, weight: Long, stamp: Long, place: Long, out: Output): Unit = {
    made.pointTo(values.bytes, values.bytes.length)
    out.emit(joined(row, made), weight, stamp, place)
  }
}

/** The values of a row, made of the row and the columns of its frames. */
final class WindowAnswer(frames: Seq[Framed], values: Seq[Expression]) {
  private val projection = UnsafeProjection.create(values)
  private val columns = frames.map(framed => new UnsafeRow(framed.columns.length)).toArray
  private val joins = frames.map(_ => new JoinedRow()).toArray

  /** The row is there as often as before, with the same columns. */
  def same(before: Array[Byte], now: Array[Byte]): Boolean =
    before != null && now != null && Tally.weight(before) == Tally.weight(now) &&
      frames.indices.forall(i => WindowRow.sectionIs(now, WindowRow.shown(i), WindowRow.section(before, WindowRow.shown(i))))

  /** Adds to each answer how many of the row's copies have it, times `sign`. */
  def count(row: UnsafeRow, kept: Array[Byte], sign: Long, weights: JavaMap[Bytes, Array[Long]]): Unit = {
    val runs = frames.indices.map(i => new RunReader(WindowRow.section(kept, WindowRow.shown(i)))).toArray
    var left = Tally.weight(kept)
    while (left > 0) {
      val copies = runs.foldLeft(left)((least, run) => math.min(least, run.left))
      weights.computeIfAbsent(valuesOf(row, runs), _ => Array(0L))(0) += sign * copies
      runs.foreach(_.skip(copies))
      left -= copies
    }
  }

  private def valuesOf(row: UnsafeRow, runs: Array[RunReader]): Bytes = {
    var all: InternalRow = row
    var i = 0
    while (i < runs.length) {
      columns(i).pointTo(runs(i).columns, runs(i).columns.length)
      all = joins(i)(all, columns(i))
      i += 1
    }
    val made = projection(all)
    new Bytes(Arrays.copyOf(made.getBytes, made.getSizeInBytes))
  }
}
