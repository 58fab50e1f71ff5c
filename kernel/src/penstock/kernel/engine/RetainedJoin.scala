package penstock.kernel.engine

import java.util.Comparator
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.LongType
import penstock.kernel.state.{Cursor, Entries, State, Sum}

/** Join of two inputs on their key, in the order of the log, in which rows of streams are corrected for a limited time.
  *
  * In: changes of the left rows (port 0) and the right rows (port 1) of one key, none of which is NULL, each at the place of the record that made it.
  * Rows of a side with a clock have as their last column the time at which they are over.
  * State: the rows of both sides, each with its tally; those that are over by their own clock are not kept, the others in the order in which they
  * will be. How often a row has a partner is kept with it where that is asked for.
  * Out: change by change, at its place, what it makes of the rows of the other side that are not over by then: pairs, and rows that find their first
  * or lose their last partner, as the kind of join says.
  *
  * @param clocks of each side, which clock its rows have; `NoClock` where they have none
  * @param streams how many clocks there are
  */
case class RetainedJoin(
    id: Int, keyWidth: Int, kind: JoinKind, widths: (Int, Int), condition: Option[Expression], clocks: Seq[Int], streams: Int, edges: Seq[Edge])
    extends Dated {
  private val watched = Array(kind.watchesLeft, kind.watchesRight)
  private val width = Array(widths._1, widths._2)
  private val dated = Array.tabulate(2)(side => clocks(side) != RetainedJoin.NoClock)
  require(dated.indices.forall(side => dated(side) || !watched(side)), "rows that stand alone have a clock")
  override val dating: Option[Dating] = Some(Dating(streams, delay = 0, allowed = 0, waits = false))

  private def order(side: Int): RowOrder = RowOrder(width(side), Seq(SortOrder(BoundReference(width(side) - 1, LongType, nullable = false), Ascending)), ranked = 1)
  override def orders: Array[Comparator[Array[Byte]]] = Array(0, 1).filter(dated(_)).map(order)
  override def sums: Array[Sum] = Array(0, 1).filterNot(dated(_)).map(_ => TallySum)

  @transient private lazy val ordered = Array.tabulate(2)(side => if (dated(side)) order(side) else null)
  @transient private lazy val timelines =
    Array.tabulate(2)(side => if (dated(side)) new Timeline(Ages(width(side) - 1, over = 0, kept = 0), ordered(side), lasting = true) else null)
  @transient private lazy val predicate: BasePredicate = condition.map(Route.predicate).orNull
  @transient private lazy val sides = Array(new UnsafeRow(width(0)), new UnsafeRow(width(1)))
  @transient private lazy val nothing = Array[InternalRow](new GenericInternalRow(width(0)), new GenericInternalRow(width(1)))
  @transient private lazy val number = UnsafeProjection.create(Seq[Expression](BoundReference(0, LongType, nullable = false)))
  @transient private lazy val pair = new JoinedRow()
  @transient private var watermarks = Watermarks.None

  override def hear(told: Watermarks): Unit = watermarks = told

  override def run(key: UnsafeRow, rows: Rows, state: State, before: Long, now: Long, deadline: Deadline, out: Output): Unit = {
    val from = next(state, before)
    run(key, rows, state, out)
    Array(0, 1).filter(dated(_)).foreach(side => timelines(side).free(held(state, side), now))
    deadline.move(from, next(state, now))
  }

  private def next(state: State, watermark: Long): Long =
    Array(0, 1).filter(dated(_)).map(side => timelines(side).deadline(held(state, side), watermark, waits = false)).min

  /** The rows of a side with a clock. */
  private def held(state: State, side: Int): Entries = state.entries(if (side == 1 && dated(0)) 1 else 0)

  override def run(key: UnsafeRow, rows: Rows, state: State, out: Output): Unit = {
    // A record may be a row of a history, and change the table: the row meets the table as it was before.
    rows.sortByStep(first = if (dated(0)) 0 else 1)
    var i = 0
    while (i < rows.size) {
      take(rows(i), Envelope.port(rows(i)), state, out)
      i += 1
    }
  }

  private def take(envelope: Array[Byte], port: Int, state: State, out: Output): Unit = {
    Envelope.read(envelope, sides(port))
    val matches = meet(envelope, port, state, out)
    if (watched(port)) give(port, matches > 0, Envelope.weight(envelope), Envelope.stamp(envelope), Envelope.place(envelope), out)
    if (!dated(port)) {
      val weight = Envelope.weight(envelope)
      state.pile(0).add(Envelope.row(envelope), Tally.of(weight, Envelope.stamp(envelope), Envelope.place(envelope)), weight)
    } else if (sides(port).getLong(width(port) - 1) > watermarks.at(clocks(port), Envelope.place(envelope)))
      Tally.count(held(state, port), envelope, if (watched(port)) matches else -1)
  }

  /** Goes to the rows of the other side that are not over; how many matched. */
  private def meet(envelope: Array[Byte], port: Int, state: State, out: Output): Long = {
    val other = sides(1 - port)
    val cursor = partners(state, 1 - port, Envelope.place(envelope))
    var matched = 0L
    while (cursor.next()) {
      val row = cursor.key
      other.pointTo(row, row.length)
      if (predicate == null || predicate.eval(pair(sides(0), sides(1)))) {
        matched += Tally.weight(cursor.value)
        matching(envelope, port, cursor, out)
      }
    }
    matched
  }

  private def partners(state: State, side: Int, place: Long): Cursor =
    if (!dated(side)) state.pile(0).walk
    else {
      val watermark = watermarks.at(clocks(side), place)
      if (watermark == Windows.None) held(state, side).ascending
      else held(state, side).from(ordered(side).probe(number(InternalRow(watermark)), RowOrder.After))
    }

  private def matching(envelope: Array[Byte], port: Int, cursor: Cursor, out: Output): Unit = {
    val tally = cursor.value
    val stamp = math.min(Envelope.stamp(envelope), Tally.stamp(tally))
    val place = math.max(Envelope.place(envelope), Tally.place(tally))
    if (kind.pairs) out.emit(pair(sides(0), sides(1)), Envelope.weight(envelope) * Tally.weight(tally), stamp, place)
    if (watched(1 - port)) {
      val before = Tally.matches(tally)
      val after = before + Envelope.weight(envelope)
      cursor.value = Tally.matched(tally, after)
      if (before == 0 || after == 0) {
        give(1 - port, after == 0, -Tally.weight(tally), stamp, place, out)
        give(1 - port, after != 0, Tally.weight(tally), stamp, place, out)
      }
    }
  }

  private def give(port: Int, partner: Boolean, weight: Long, stamp: Long, place: Long, out: Output): Unit = kind match {
    case JoinKind.Exists => out.emit(pair(sides(0), if (partner) Join.Yes else Join.No), weight, stamp, place)
    case JoinKind.Semi => if (partner) out.emit(sides(0), weight, stamp, place)
    case JoinKind.Anti => if (!partner) out.emit(sides(0), weight, stamp, place)
    case _ => if (!partner) out.emit(if (port == 0) pair(sides(0), nothing(1)) else pair(nothing(0), sides(1)), weight, stamp, place)
  }
}

object RetainedJoin {
  /** Rows of a side that nothing frees. */
  val NoClock: Int = -1
}
