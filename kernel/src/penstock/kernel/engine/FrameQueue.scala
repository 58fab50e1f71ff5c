package penstock.kernel.engine

import java.util.ArrayDeque

/** The rows of a frame that moves: they come at one end and leave at the other. */
abstract class FrameQueue(functions: FrameFunctions) {
  protected val rows = new ArrayDeque[Queued]()
  private var made: Array[Byte] = null

  protected def gathered: Gathered
  protected def pushed(row: Queued): Unit
  /** The first row is about to leave. */
  protected def popping(): Unit
  protected def cleared(): Unit

  def isEmpty: Boolean = rows.isEmpty
  def firstRow: Array[Byte] = rows.peekFirst.row
  def firstIndex: Long = rows.peekFirst.index

  def push(row: Array[Byte], times: Long, index: Long): Unit = {
    val queued = new Queued(row, times, index)
    rows.addLast(queued)
    pushed(queued)
    made = null
  }
  def pop(): Unit = {
    popping()
    rows.pollFirst()
    made = null
  }
  def clear(): Unit = {
    rows.clear()
    cleared()
    made = null
  }
  /** The columns that the functions make of the rows. */
  def columns: Array[Byte] = {
    if (made == null) made = functions.columns(gathered)
    made
  }
}

final class Queued(val row: Array[Byte], val times: Long, val index: Long)

object FrameQueue {
  def of(functions: FrameFunctions): FrameQueue = if (functions.merges) new MergedQueue(functions) else new ReplayedQueue(functions)
}

/** Gathers all rows again when they have changed: for functions that can only take one row after the other. */
final class ReplayedQueue(functions: FrameFunctions) extends FrameQueue(functions) {
  override protected def gathered: Gathered = {
    val g = functions.fresh()
    rows.forEach(each => functions.add(g, each.row, each.times))
    g
  }
  override protected def pushed(row: Queued): Unit = ()
  override protected def popping(): Unit = ()
  override protected def cleared(): Unit = ()
}

/** A row costs a constant number of merges, however many are in the frame.
  *
  * The older rows keep what was gathered from each of them to the last of them; of the newer ones only the whole is gathered. When
  * the older are used up, the newer become the older.
  */
final class MergedQueue(functions: FrameFunctions) extends FrameQueue(functions) {
  private val older = new ArrayDeque[Gathered]()
  private var newer: Gathered = null

  override protected def gathered: Gathered =
    if (newer == null) { if (older.isEmpty) functions.fresh() else older.peekFirst }
    else if (older.isEmpty) newer
    else functions.merged(older.peekFirst, newer)

  override protected def pushed(row: Queued): Unit = {
    if (newer == null) newer = functions.fresh()
    functions.add(newer, row.row, row.times)
  }
  override protected def popping(): Unit = {
    if (older.isEmpty) age()
    older.pollFirst()
  }
  private def age(): Unit = {
    var g = functions.fresh()
    val backwards = rows.descendingIterator
    while (backwards.hasNext) {
      val each = backwards.next()
      g = functions.before(each.row, each.times, g)
      older.addFirst(g)
    }
    newer = null
  }
  override protected def cleared(): Unit = {
    older.clear()
    newer = null
  }
}
