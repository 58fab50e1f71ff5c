package penstock.kernel.engine

import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeProjection, UnsafeRow}
import org.apache.spark.unsafe.Platform
import penstock.kernel.state.{Entries, State}

/** An aggregate over windows that overlap, shown when they are complete: a row is taken in once, in its slice, and a window is as many slices as fit into it.
  *
  * In: rows that only come, and what the combiner made of them, under a key of their own: the start of the slice, the end of the first window that the row
  * was in time for, then the other groups. The first two do not choose the slot: what belongs to one window meets.
  * State: by that end, as windows have theirs, what the folds gathered.
  * Out: of each window, once, the answer for each of its groups.
  *
  * @param aggregate has the window among its groups
  * @param groups the key of the aggregate, made of the start and the end of a window and the other groups
  */
final case class Slices(aggregate: Aggregate, slide: Long, length: Long, clocks: Int, groups: Seq[Expression]) extends Operator {
  override def id: Int = aggregate.id
  override def keyWidth: Int = aggregate.keyWidth + 1
  override def edges: Seq[Edge] = aggregate.edges

  @transient private lazy val key = new UnsafeRow(keyWidth)
  @transient private lazy val group = UnsafeProjection.create(groups)
  /** No fold has collections. */
  @transient private lazy val nothing = aggregate.gathering.folds.map(_ => Array.empty[Entries]).toArray

  override def run(key: UnsafeRow, rows: Rows, state: State, out: Output): Unit = aggregate.gather(key, rows, state)

  /** Gives out what was gathered for a window; `bytes` are a key, whose slice is not looked at. */
  def show(bytes: Array[Byte], end: Long, gathered: Gathered, out: Output): Unit = {
    Slices.put(bytes, end - length, end)
    key.pointTo(bytes, bytes.length)
    out.emit(aggregate.answer(group(key), gathered, nothing), 1, Long.MinValue, Long.MinValue)
  }
}

object Slices {
  private val Start = Platform.BYTE_ARRAY_OFFSET + 8
  /** So many bytes of a key are its slice, with the bits that tell which columns are NULL. */
  val Apart: Int = 24

  /** The start of a key's slice. */
  def start(key: Array[Byte], offset: Int): Long = Platform.getLong(key, Start + offset)
  /** The end of the first window that has the key's rows. */
  def first(key: Array[Byte], offset: Int): Long = Platform.getLong(key, Start + 8 + offset)

  def put(key: Array[Byte], start: Long, end: Long): Unit = {
    Platform.putLong(key, Start, start)
    Platform.putLong(key, Start + 8, end)
  }
}
