package penstock.kernel.engine

import java.util.Arrays
import penstock.kernel.state.Cursor

/** How the columns of one frame are brought up to date in a partition whose rows have changed. */
abstract class Sweep {

  /** `changed` are the rows that came, left, or are there more or less often, in the partition's order; the partition has these changes already.
    *
    * Afterwards every row's columns are those of its frame.
    */
  def sweep(partition: Partition, changed: Array[Array[Byte]]): Unit
}

object Sweep {
  def of(framed: Framed, frame: Int, order: RowOrder): Sweep = {
    val functions = new FrameFunctions(framed, order.width)
    val upper = new Limit(order, framed.upper, new Way(order, up = true))
    val lower = new Limit(order, framed.lower, new Way(order, up = false))
    if (lower.unbounded && upper.unbounded) new Whole(frame, functions)
    else if (lower.unbounded) new Running(frame, functions, upper)
    else if (upper.unbounded && functions.merges) new Running(frame, functions, lower)
    else new Moving(frame, functions, lower, upper)
  }
}

/** A frame that is the whole partition: it is gathered anew, and every row gets the same columns. Where these are what they were, only the rows that have
  * changed are visited once more.
  */
final class Whole(frame: Int, functions: FrameFunctions) extends Sweep {
  override def sweep(partition: Partition, changed: Array[Array[Byte]]): Unit = {
    val g = functions.fresh()
    var before: Array[Byte] = null
    val all = steps(partition.entries.ascending)
    while (all.has) {
      functions.add(g, all.row, all.times)
      if (before == null && !partition.hasChanged(all.row)) before = new RunReader(WindowRow.section(all.kept, WindowRow.shown(frame))).columns
      all.advance()
    }
    val columns = functions.columns(g)
    if (before != null && Arrays.equals(before, columns)) changed.foreach { row =>
      val at = steps(partition.entries.from(row))
      if (at.has && Arrays.equals(at.row, row)) give(partition, at, columns)
    } else {
      val rows = steps(partition.entries.ascending)
      while (rows.has) {
        give(partition, rows, columns)
        rows.advance()
      }
    }
  }

  private def steps(walk: Cursor): Steps = new Steps(walk, together = true, 0L)

  private def give(partition: Partition, at: Steps, columns: Array[Byte]): Unit = {
    val runs = new Runs
    runs.add(columns, at.times)
    partition.put(at, WindowRow.shown(frame), runs.take(backwards = false))
    partition.evaluated += 1
  }
}
