package penstock.kernel.engine

import java.util.{Arrays, Comparator, LinkedHashMap => JavaMap}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BasePredicate, Expression, GenericInternalRow, JoinedRow, UnsafeRow}
import penstock.kernel.state.{Cursor, Entries, State}

/** Every left row with the right row that is nearest to it in time, of those with its key on one side of it.
  *
  * In: changes of the left rows (port 0) and the right rows (port 1) of one key; neither the key nor the time is NULL.
  * State: collection 0, the left rows in the order of their times; collection 1, the right rows in theirs; each with its tally.
  * Out: the pairs that a change makes or breaks, retractions before assertions; where rows without a partner are kept, these with NULLs. A right row
  * that comes or goes concerns the left rows from its time up to the next right row that matches whatever comes; a left row that comes costs one
  * look. A pair has the later place and the smaller stamp of its two rows.
  * With `ages`, left rows go when no version that comes can concern them; what was given out for them stays.
  */
final case class AsOf(
    id: Int, keyWidth: Int, outer: Boolean, order: (RowOrder, RowOrder), nearest: Nearest, edges: Seq[Edge], ages: Option[Ages] = None, clocks: Int = 1) extends Dated {
  override def orders: Array[Comparator[Array[Byte]]] = Array(order._1, order._2)
  override val dating: Option[Dating] = ages.map(_ => Dating(clocks, delay = 0, allowed = 0, waits = false))

  @transient private lazy val looking = new Looking(order._1, order._2, nearest)
  @transient private lazy val left = new UnsafeRow(order._1.width)
  @transient private lazy val right = new UnsafeRow(order._2.width)
  @transient private lazy val nothing = new GenericInternalRow(order._2.width)
  @transient private lazy val pair = new JoinedRow()
  /** How many left rows were looked at since the operator began to work. */
  @transient private[engine] var looked = 0L

  @transient private lazy val timeline = ages.map(new Timeline(_, order._1, lasting = false)).orNull

  override def run(key: UnsafeRow, rows: Rows, state: State, before: Long, now: Long, deadline: Deadline, out: Output): Unit = {
    val lefts = state.entries(0)
    val from = timeline.deadline(lefts, before, waits = false)
    if (rows.size > 0) run(key, rows, state, out)
    timeline.free(lefts, now)
    deadline.move(from, timeline.deadline(lefts, now, waits = false))
  }

  override def run(key: UnsafeRow, rows: Rows, state: State, out: Output): Unit = {
    rows.consolidate()
    val (lefts, rights) = (state.entries(0), state.entries(1))
    val touched = new JavaMap[Bytes, Touched]()
    val versions = of(rows, 1).map(Envelope.row)
    looking.concerned(versions, lefts, rights)(touch(_, lefts, rights, touched))
    of(rows, 0).foreach(envelope => touch(Envelope.row(envelope), lefts, rights, touched))
    of(rows, 0).foreach(Tally.count(lefts, _))
    of(rows, 1).foreach(Tally.count(rights, _))
    touched.forEach((row, each) => each.now = if (versions.isEmpty) each.before.of(lefts.get(row.bytes)) else answer(row.bytes, lefts, rights))
    val place = rows.lastPlace
    touched.forEach((row, each) => emit(row, each.before, -each.gone, place, out))
    touched.forEach((row, each) => emit(row, each.now, each.come, Long.MinValue, out))
  }

  private def of(rows: Rows, port: Int): Array[Array[Byte]] = Array.tabulate(rows.size)(rows(_)).filter(Envelope.port(_) == port)

  private def touch(row: Array[Byte], lefts: Entries, rights: Entries, touched: JavaMap[Bytes, Touched]): Unit =
    touched.computeIfAbsent(new Bytes(row), _ => new Touched(answer(row, lefts, rights)))

  private def answer(row: Array[Byte], lefts: Entries, rights: Entries): Answer = {
    looked += 1
    val found = looking.partner(row, rights)
    new Answer(lefts.get(row), if (found == null) null else found.key, if (found == null) null else found.value)
  }

  private def emit(row: Bytes, answer: Answer, weight: Long, after: Long, out: Output): Unit = if (weight != 0 && (outer || answer.partner != null)) {
    left.pointTo(row.bytes, row.bytes.length)
    if (answer.partner != null) right.pointTo(answer.partner, answer.partner.length)
    out.emit(pair(left, if (answer.partner == null) nothing else right), weight, answer.stamp, math.max(after, answer.place))
  }
}

/** Which right row is the nearest: at or before the left row's time, or with `forward` at or after it; not at it unless `exact`.
  *
  * @param condition what else must hold for a right row to be considered, over the left row followed by the right one
  * @param certain of a right row: whether the condition holds for every left row that it is on the right side of; missing where no row tells
  * @param within what the nearest one must fulfil to be a partner; if it does not, no other does
  */
final case class Nearest(
    forward: Boolean, exact: Boolean, condition: Option[Expression] = None, certain: Option[Expression] = None, within: Option[Expression] = None)

/** A left row's partner, null where it has none, and the tallies of both. */
private final class Answer(tally: Array[Byte], val partner: Array[Byte], partnerTally: Array[Byte]) {
  val weight: Long = if (tally == null) 0 else Tally.weight(tally)
  /** The same partner, for a row that is there more or less often. */
  def of(changed: Array[Byte]): Answer = new Answer(changed, partner, partnerTally)
  def place: Long = both(Tally.place, math.max(_, _))
  def stamp: Long = both(Tally.stamp, math.min(_, _))
  private def both(number: Array[Byte] => Long, one: (Long, Long) => Long): Long =
    if (partnerTally == null) number(tally) else one(number(tally), number(partnerTally))
}

/** A left row during a batch: its answer before, and after. */
private final class Touched(val before: Answer) {
  var now: Answer = _
  private def same: Boolean = Arrays.equals(before.partner, now.partner)
  /** How many copies of the old answer are retracted, and of the new one asserted. */
  def gone: Long = if (same) math.max(before.weight - now.weight, 0) else before.weight
  def come: Long = if (same) math.max(now.weight - before.weight, 0) else now.weight
}

/** How partners are found in the rows of one key, and the left rows whose partner may be another. */
private final class Looking(leftOrder: RowOrder, rightOrder: RowOrder, nearest: Nearest) {
  private val condition = nearest.condition.map(Route.predicate).orNull
  private val certain = nearest.certain.map(Route.predicate).orNull
  private val within = nearest.within.map(Route.predicate).orNull
  private val left = new UnsafeRow(leftOrder.width)
  private val right = new UnsafeRow(rightOrder.width)
  private val pair = new JoinedRow()
  /** Where left rows begin that a right row of the same time is considered for, seen in the direction in which they lie. */
  private val begin: Byte = if (nearest.forward == nearest.exact) RowOrder.After else RowOrder.Before
  private val end: Byte = if (begin == RowOrder.After) RowOrder.Before else RowOrder.After

  /** Stands at the left row's partner; null where it has none. */
  def partner(row: Array[Byte], rights: Entries): Cursor = {
    val from = leftOrder.peers(row, end)
    val cursor = if (nearest.forward) rights.from(from) else rights.to(from)
    left.pointTo(row, row.length)
    var found: Cursor = null
    while (found == null && cursor.next()) if (holds(condition, cursor.key)) found = cursor
    if (found != null && holds(within, found.key)) found else null
  }

  /** Visits the left rows whose partner may change with those right rows, each at least once. */
  def concerned(versions: Array[Array[Byte]], lefts: Entries, rights: Entries)(visit: Array[Byte] => Unit): Unit = {
    Arrays.sort(versions, ahead)
    var barrier: Array[Byte] = null
    var ended = lefts.isEmpty
    versions.foreach { version =>
      if (!ended && (barrier == null || ahead.compare(version, barrier) >= 0)) {
        barrier = next(version, rights)
        ended = barrier == null
        walk(version, barrier, lefts, visit)
      }
    }
  }

  /** In the direction in which the left rows of a right row lie. */
  private val ahead: Comparator[Array[Byte]] = (a: Array[Byte], b: Array[Byte]) => if (nearest.forward) rightOrder.total(b, a) else rightOrder.total(a, b)

  /** The next right row that matches every left row beyond it; null where there is none. */
  private def next(version: Array[Byte], rights: Entries): Array[Byte] = {
    val cursor = if (nearest.forward) rights.before(version) else rights.after(version)
    var found: Array[Byte] = null
    if (condition == null || certain != null) while (found == null && cursor.next()) if (isCertain(cursor.key)) found = cursor.key
    found
  }

  private def isCertain(row: Array[Byte]): Boolean = certain == null || {
    right.pointTo(row, row.length)
    certain.eval(right)
  }

  private def walk(version: Array[Byte], barrier: Array[Byte], lefts: Entries, visit: Array[Byte] => Unit): Unit = {
    val from = rightOrder.peers(version, begin)
    val limit = if (barrier == null) null else rightOrder.peers(barrier, begin)
    val cursor = if (nearest.forward) lefts.to(from) else lefts.from(from)
    while (cursor.next() && (limit == null || leftOrder.compare(cursor.key, limit) > 0 == nearest.forward)) visit(cursor.key)
  }

  private def holds(predicate: BasePredicate, row: Array[Byte]): Boolean = predicate == null || {
    right.pointTo(row, row.length)
    predicate.eval(pair(left, right))
  }
}
