package penstock.kernel.engine

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

/** A frame that is the whole partition: it is gathered anew, and every row gets the same columns. */
final class Whole(frame: Int, functions: FrameFunctions) extends Sweep {
  override def sweep(partition: Partition, changed: Array[Array[Byte]]): Unit = {
    val g = functions.fresh()
    val all = new Steps(partition.entries.ascending, together = true, 0L)
    while (all.has) {
      functions.add(g, all.row, all.times)
      all.advance()
    }
    val columns = functions.columns(g)
    val runs = new Runs
    val rows = new Steps(partition.entries.ascending, together = true, 0L)
    while (rows.has) {
      runs.add(columns, rows.times)
      partition.put(rows, WindowRow.shown(frame), runs.take(backwards = false))
      partition.evaluated += 1
      rows.advance()
    }
  }
}
