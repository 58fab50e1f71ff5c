package penstock.kernel.engine

/** A frame that moves along with the row: a change is evaluated at the rows whose frames reach it, and at no others.
  *
  * Where frames lie on one side of their rows, the rows between count as reached.
  */
final class Moving(frame: Int, functions: FrameFunctions, lower: Limit, upper: Limit) extends Sweep {
  override def sweep(partition: Partition, changed: Array[Array[Byte]]): Unit = {
    val pass = new MovingPass(partition, changed, frame, FrameQueue.of(functions), lower, upper)
    while (!pass.done) pass.run()
  }
}

private final class MovingPass(
    partition: Partition, changed: Array[Array[Byte]], frame: Int, queue: FrameQueue, lower: Limit, upper: Limit) {
  private val way = upper.way
  private val byRows = lower.byRows || upper.byRows
  private val runs = new Runs
  /** How many changes lie no further than the frame of `at` or `at` itself. */
  private var next = 0
  private var at: Steps = _
  /** The first step beyond the frame of `at`, and the row of the last one within. */
  private var entering: Steps = _
  private var entered: Array[Byte] = _

  def done: Boolean = next == changed.length

  def run(): Unit = {
    val started = next
    start(changed(next))
    var open = at.has
    while (open) open = evaluateRow() && at.has
    next = if (at.has) math.max(next, started + 1) else changed.length
  }

  private def start(change: Array[Byte]): Unit = {
    val (key, _) = upper.firstReaching(partition.entries, change)
    at = new Steps(if (key == null) partition.entries.ascending else way.from(partition.entries, key), together = !byRows, 0L)
    queue.clear()
    entered = null
    if (at.has) {
      val (from, copies) = if (byRows) way.behind(partition.entries, at.row, lower.ahead) else (lower.probe(at.row), 0L)
      entering = new Steps(way.from(partition.entries, from), together = !byRows, -copies)
    }
  }

  /** Whether a change was reached from any of the row's copies; a row from which none was stays as it is, for rows of its frame may be gone. */
  private def evaluateRow(): Boolean = {
    var reached = false
    var open = true
    while (open) {
      slide()
      if (reachesChange) reached = true
      runs.add(queue.columns, at.times)
      open = !at.lastOfRow
      if (!open) {
        val columns = runs.take(backwards = false)
        if (reached) partition.put(at, WindowRow.shown(frame), columns)
      }
      at.advance()
    }
    partition.evaluated += 1
    reached
  }

  private def slide(): Unit = {
    while (entering.has && upper.reaches(at.row, entering.row, entering.index - at.index)) {
      if (lower.reaches(at.row, entering.row, at.index - entering.index)) queue.push(entering.row, entering.times, entering.index)
      entered = entering.row
      entering.advance()
    }
    while (!queue.isEmpty && !lower.reaches(at.row, queue.firstRow, at.index - queue.firstIndex)) queue.pop()
  }

  private def reachesChange: Boolean = {
    while (next < changed.length && (way.compare(changed(next), at.row) <= 0 || aboveReaches(changed(next)))) next += 1
    next > 0 && (way.compare(changed(next - 1), at.row) >= 0 || belowReaches(changed(next - 1)))
  }

  private def aboveReaches(change: Array[Byte]): Boolean =
    if (!upper.byRows) upper.reaches(at.row, change, 0L)
    else upper.ahead > 0 && (!entering.has || (entered != null && way.compare(change, entered) <= 0))

  /** By rows: at or after the first row of the frame, or the frame would begin before the partition does. */
  private def belowReaches(change: Array[Byte]): Boolean =
    if (!lower.byRows) lower.reaches(at.row, change, 0L)
    else lower.ahead > 0 && (queue.isEmpty || at.index - queue.firstIndex < lower.ahead || way.compare(change, queue.firstRow) >= 0)
}
