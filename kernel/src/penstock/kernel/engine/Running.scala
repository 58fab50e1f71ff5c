package penstock.kernel.engine

/** A frame that begins with the partition and ends somewhere about the row, or, on the way down, the other way round.
  *
  * Each row keeps what was gathered up to and with it. A sweep begins where the first frame reaches the first change, goes on from what the
  * row before keeps, and ends as soon as what it has gathered is what a row kept already; then it goes on at the next change. Where that grows with
  * the rows they do not keep it: the rows before the first change are gathered again, and the sweep goes on to the partition's end.
  */
final class Running(frame: Int, functions: FrameFunctions, end: Limit) extends Sweep {
  override def sweep(partition: Partition, changed: Array[Array[Byte]]): Unit = {
    val pass = new RunningPass(partition, if (end.way.up) changed else changed.reverse, frame, functions, end)
    while (!pass.done) pass.run()
  }
}

private final class RunningPass(partition: Partition, changed: Array[Array[Byte]], frame: Int, functions: FrameFunctions, end: Limit) {
  private val way = end.way
  private val runs = new Runs
  /** How many changes the end of the frame has passed. */
  private var next = 0
  private var at: Steps = _
  /** The first step beyond the frame of `at`; `gathered` is all before it. */
  private var ahead: Steps = _
  private var gathered: Gathered = _
  private var columns: Array[Byte] = _
  /** What was gathered up to the last whole row is what it kept before. */
  private var steady = false

  def done: Boolean = next == changed.length

  def run(): Unit = {
    val started = next
    start(changed(next))
    var open = at.has
    while (open) {
      evaluateRow()
      open = at.has && !settled(started)
    }
    if (!at.has) finish()
  }

  private def start(change: Array[Byte]): Unit = {
    val (key, copies) = end.firstReaching(partition.entries, change)
    at = steps(key, -copies)
    if (end.byRows && end.ahead < 0) {
      val (from, passed) = way.behind(partition.entries, change, -end.ahead)
      begin(from, -passed)
    } else if (end.byRows) begin(key, -copies)
    else if (at.has && way.compare(end.probe(at.row), change) < 0) begin(end.probe(at.row), 0L)
    else begin(change, 0L)
    steady = false
    columns = null
  }

  private def begin(key: Array[Byte], index: Long): Unit = {
    ahead = steps(key, index)
    gathered = if (functions.grows) allBefore(key) else keptBefore(key)
  }

  private def keptBefore(key: Array[Byte]): Gathered = {
    val before = way.back(partition.entries, key)
    if (before.next()) functions.read(WindowRow.section(before.value, WindowRow.gathered(frame))) else functions.fresh()
  }

  private def allBefore(key: Array[Byte]): Gathered = {
    val g = functions.fresh()
    val all = new Steps(partition.entries.ascending, together = true, 0L)
    while (all.has && way.compare(all.row, key) < 0) {
      functions.add(g, all.row, all.times)
      all.advance()
    }
    g
  }

  private def steps(key: Array[Byte], index: Long): Steps = new Steps(way.from(partition.entries, key), together = !end.byRows, index)

  private def evaluateRow(): Unit = {
    var open = true
    while (open) {
      extend()
      if (columns == null) columns = functions.columns(gathered)
      runs.add(columns, at.times)
      open = !at.lastOfRow
      if (!open) partition.put(at, WindowRow.shown(frame), runs.take(backwards = !way.up))
      at.advance()
    }
    partition.evaluated += 1
  }

  private def extend(): Unit = while (ahead.has && end.reaches(at.row, ahead.row, ahead.index - at.index)) gather()

  private def gather(): Unit = {
    if (way.up) functions.add(gathered, ahead.row, ahead.times) else gathered = functions.before(ahead.row, ahead.times, gathered)
    columns = null
    while (next < changed.length && way.compare(changed(next), ahead.row) <= 0) {
      next += 1
      steady = false
    }
    if (ahead.lastOfRow && !functions.grows) steady = partition.put(ahead, WindowRow.gathered(frame), functions.write(gathered))
    ahead.advance()
  }

  /** From `at` to the next change nothing has changed: not what is gathered, and not where the frames end. */
  private def settled(started: Int): Boolean = {
    extend()
    steady && next > started && way.compare(changed(next - 1), at.row) < 0 && (done || way.compare(at.row, changed(next)) < 0)
  }

  /** The frame's end may lag behind: the last rows, too, keep what was gathered up to them. */
  private def finish(): Unit = {
    while (ahead.has && !(steady && done) && !functions.grows) gather()
    next = changed.length
  }
}
