package penstock.kernel.engine

import java.util.Comparator
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BasePredicate, BoundReference, Expression, GenericInternalRow, JoinedRow, Predicate, UnsafeRow}
import org.apache.spark.unsafe.Platform
import penstock.kernel.state.{Cursor, State, Sum}

/** Join of two inputs on their key, with a condition on top.
  *
  * In: changes of the left rows (port 0) and the right rows (port 1) of one key, none of which is NULL.
  * State: the left rows and the right rows, each with its tally; how often it has a partner is kept with the row where a condition
  * decides it, else it is the number of rows on the other side, kept as the key's value. Where only that number matters, rows are not kept.
  * Rows lie in a collection where they are found by a range or where partners are counted, else in a pile: whoever comes from the other side
  * meets all of them.
  * Out: a change for every pair that a change makes or breaks, and for every row that finds its first or loses its last partner, as the kind of
  * join says; the later place and the smaller stamp of the two.
  * Where the condition is a range of time, rows go when none can match them any more; one that has found no partner may be shown only then.
  */
case class Join(
    id: Int, keyWidth: Int, kind: JoinKind, widths: (Int, Int), condition: Option[Expression], ranges: (Option[Span], Option[Span]), edges: Seq[Edge],
    override val timing: Option[Timing] = None, dating: Option[Dating] = None, ages: (Option[Ages], Option[Ages]) = (None, None))
    extends Dated {
  private val watched = Array(kind.watchesLeft, kind.watchesRight)
  private val counted = condition.isEmpty && (kind.watchesLeft || kind.watchesRight)
  private val spans = Array(ranges._1, ranges._2)
  private val ordered = Array.tabulate(2)(side => spans(side).isDefined || (watched(side) && condition.isDefined))
  override def orders: Array[Comparator[Array[Byte]]] =
    Array(0, 1).filter(ordered(_)).map(side => spans(side).map(_.order(width(side))).getOrElse(Operator.Bytes))
  override def sums: Array[Sum] = Array(0, 1).filterNot(ordered(_)).map(_ => TallySum)
  private def width(side: Int): Int = if (side == 0) widths._1 else widths._2
  /** Whether nobody sees the columns of a side: then a row that replaces another concerns only those whom one of the two matches. */
  private val unseen: Array[Boolean] = {
    val read = edges.flatMap(_.expressions).flatMap(_.collect { case column: BoundReference => column.ordinal })
    Array(!read.exists(_ < widths._1), !read.exists(_ >= widths._1)).map(_ && kind == JoinKind.Inner)
  }

  @transient private lazy val predicate: BasePredicate = condition.map { c =>
    val made = Predicate.create(c)
    made.initialize(0)
    made
  }.orNull
  @transient private lazy val held: Array[JoinSide] = Array.tabulate(2) { side =>
    val place = if (side == 1 && ordered(0) == ordered(1)) 1 else 0
    if (side == 1 && !kind.pairs && condition.isEmpty) NoSide
    else if (ordered(side)) new OrderedSide(place, spans(side).map(new Bounds(_, width(side))).orNull)
    else new PiledSide(place)
  }
  @transient private lazy val sides = Array(new UnsafeRow(widths._1), new UnsafeRow(widths._2))
  @transient private lazy val nothing = Array[InternalRow](new GenericInternalRow(widths._1), new GenericInternalRow(widths._2))
  @transient private lazy val pair = new JoinedRow()
  @transient private lazy val replacement = Array(new UnsafeRow(widths._1), new UnsafeRow(widths._2))

  @transient private lazy val timelines: Array[Timeline] = Array(0, 1).map { side =>
    (if (side == 0) ages._1 else ages._2).map(new Timeline(_, spans(side).get.order(width(side)), lasting = false)).orNull
  }
  private val waits = dating.exists(_.waits)
  /** The watermark when the batch began: rows that were over by then are shown though they have no partner. */
  @transient private var begun = Windows.None

  override def run(key: UnsafeRow, rows: Rows, state: State, before: Long, now: Long, deadline: Deadline, out: Output): Unit = {
    val from = next(state, before)
    begun = before
    run(key, rows, state, out)
    Array(0, 1).filter(timelines(_) != null).foreach { side =>
      val held = state.entries(side)
      if (waits && watched(side)) timelines(side).each(held, before, now) { (row, at) => if (Tally.matches(at.value) == 0) lone(side, row, at.value, out) }
      timelines(side).free(held, now)
    }
    deadline.move(from, next(state, now))
  }

  private def next(state: State, watermark: Long): Long = Array(0, 1).foldLeft(Deadline.Never) { (least, side) =>
    if (timelines(side) == null) least else math.min(least, timelines(side).deadline(state.entries(side), watermark, waits && watched(side)))
  }

  private def lone(side: Int, row: UnsafeRow, tally: Array[Byte], out: Output): Unit = {
    sides(side).pointTo(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes)
    give(side, partner = false, Tally.weight(tally), Tally.stamp(tally), Tally.place(tally), out)
  }

  override def run(key: UnsafeRow, rows: Rows, state: State, out: Output): Unit = {
    rows.consolidate()
    val totals = if (counted) Join.totals(state.value) else Join.NoTotals
    val done = replaced(rows, state, out)
    // Rows that come are taken before rows that go: what is replaced never seems to be missing in between.
    pass(rows, coming = true, done, state, totals, out)
    pass(rows, coming = false, done, state, totals, out)
    if (counted) state.value = if (totals(0) == 0 && totals(1) == 0) null else Join.bytesOf(totals)
  }

  /** Takes the two changes of a side by which one row replaces another, where nobody sees more of it than whom it matches; the side, or -1. */
  private def replaced(rows: Rows, state: State, out: Output): Int = {
    val side = if (unseen(0) && replaces(rows, 0)) 0 else if (unseen(1) && replaces(rows, 1)) 1 else -1
    if (side >= 0) {
      val first = if (side == 0) 0 else rows.size - 2
      if (predicate != null) {
        meetAlone(rows(first), rows(first + 1), side, state, out)
        meetAlone(rows(first + 1), rows(first), side, state, out)
      }
      held(side).take(state, rows(first), -1)
      held(side).take(state, rows(first + 1), -1)
    }
    side
  }

  /** Whether the changes of a side are two that cancel out. They stand together: by `consolidate` rows are in the order of their ports. */
  private def replaces(rows: Rows, side: Int): Boolean = {
    val (first, beyond) = if (side == 0) (0, 2) else (rows.size - 2, rows.size - 3)
    def isOf(i: Int): Boolean = i >= 0 && i < rows.size && Envelope.port(rows(i)) == side
    isOf(first) && isOf(first + 1) && !isOf(beyond) && Envelope.weight(rows(first)) == -Envelope.weight(rows(first + 1))
  }

  /** Goes to the rows of the other side that match this change, and not that one. */
  private def meetAlone(envelope: Array[Byte], other: Array[Byte], port: Int, state: State, out: Output): Unit = {
    Envelope.read(envelope, sides(port))
    Envelope.read(other, replacement(port))
    val partner = sides(1 - port)
    val cursor = held(1 - port).partners(state, sides(port))
    while (cursor.next()) {
      partner.pointTo(cursor.key, cursor.key.length)
      if (predicate.eval(pair(sides(0), sides(1))) && !predicate.eval(if (port == 0) pair(replacement(0), partner) else pair(partner, replacement(1))))
        matching(envelope, port, cursor.value, cursor, turns = false, out)
    }
  }

  private def pass(rows: Rows, coming: Boolean, done: Int, state: State, totals: Array[Long], out: Output): Unit = {
    var i = 0
    while (i < rows.size) {
      val envelope = rows(i)
      if (Envelope.weight(envelope) > 0 == coming && Envelope.port(envelope) != done) take(envelope, Envelope.port(envelope), state, totals, out)
      i += 1
    }
  }

  private def take(envelope: Array[Byte], port: Int, state: State, totals: Array[Long], out: Output): Unit = {
    Envelope.read(envelope, sides(port))
    val weight = Envelope.weight(envelope)
    val matches = meet(envelope, port, state, totals, out)
    if (watched(port)) emit(port, matches > 0, weight, Envelope.stamp(envelope), Envelope.place(envelope), out)
    held(port).take(state, envelope, if (watched(port) && condition.isDefined) matches else -1)
    if (counted) totals(port) += weight
  }

  /** Goes to the rows of the other side; how many matched. */
  private def meet(envelope: Array[Byte], port: Int, state: State, totals: Array[Long], out: Output): Long = {
    val weight = Envelope.weight(envelope)
    val turns = counted && watched(1 - port) && (totals(port) == 0 || totals(port) + weight == 0)
    if (kind.pairs || condition.isDefined || turns) {
      val other = sides(1 - port)
      val cursor = held(1 - port).partners(state, sides(port))
      var matched = 0L
      while (cursor.next()) {
        val row = cursor.key
        other.pointTo(row, row.length)
        if (predicate == null || predicate.eval(pair(sides(0), sides(1)))) {
          val tally = cursor.value
          matched += Tally.weight(tally)
          matching(envelope, port, tally, cursor, turns, out)
        }
      }
      matched
    } else totals(1 - port)
  }

  private def matching(envelope: Array[Byte], port: Int, tally: Array[Byte], cursor: Cursor, turns: Boolean, out: Output): Unit = {
    val stamp = math.min(Envelope.stamp(envelope), Tally.stamp(tally))
    val place = math.max(Envelope.place(envelope), Tally.place(tally))
    if (kind.pairs) out.emit(pair(sides(0), sides(1)), Envelope.weight(envelope) * Tally.weight(tally), stamp, place)
    if (watched(1 - port)) {
      val comes = Envelope.weight(envelope) > 0
      val turned = if (condition.isEmpty) turns
      else {
        val before = Tally.matches(tally)
        val after = before + Envelope.weight(envelope)
        cursor.value = Tally.matched(tally, after)
        before == 0 || after == 0
      }
      if (turned) {
        emit(1 - port, !comes, -Tally.weight(tally), stamp, place, out)
        emit(1 - port, comes, Tally.weight(tally), stamp, place, out)
      }
    }
  }

  /** What a row of `port` gives besides pairs, unless it has to wait for a partner. */
  private def emit(port: Int, partner: Boolean, weight: Long, stamp: Long, place: Long, out: Output): Unit =
    if (partner || !waits || timelines(port) == null || timelines(port).isOver(sides(port), begun)) give(port, partner, weight, stamp, place, out)

  private def give(port: Int, partner: Boolean, weight: Long, stamp: Long, place: Long, out: Output): Unit = kind match {
    case JoinKind.Exists => out.emit(pair(sides(0), if (partner) Join.Yes else Join.No), weight, stamp, place)
    case JoinKind.Semi => if (partner) out.emit(sides(0), weight, stamp, place)
    case JoinKind.Anti => if (!partner) out.emit(sides(0), weight, stamp, place)
    case _ => if (!partner) out.emit(if (port == 0) pair(sides(0), nothing(1)) else pair(nothing(0), sides(1)), weight, stamp, place)
  }
}

/** The kinds of joins: whether pairs are given out, and whether rows of a side are watched for having a partner. */
sealed abstract class JoinKind(val pairs: Boolean, val watchesLeft: Boolean, val watchesRight: Boolean) extends Serializable
object JoinKind {
  case object Inner extends JoinKind(true, false, false)
  case object Left extends JoinKind(true, true, false)
  case object Right extends JoinKind(true, false, true)
  case object Full extends JoinKind(true, true, true)
  case object Semi extends JoinKind(false, true, false)
  case object Anti extends JoinKind(false, true, false)
  /** Left rows with one more column: whether there is a partner. */
  case object Exists extends JoinKind(false, true, false)
  val all: Map[String, JoinKind] =
    Map("inner" -> Inner, "left" -> Left, "right" -> Right, "full" -> Full, "semi" -> Semi, "anti" -> Anti, "exists" -> Exists)
}

object Join {
  private val NoTotals = Array.emptyLongArray
  private[engine] val Yes = InternalRow(true)
  private[engine] val No = InternalRow(false)

  private def totals(bytes: Array[Byte]): Array[Long] =
    if (bytes == null) new Array[Long](2)
    else Array(Platform.getLong(bytes, Platform.BYTE_ARRAY_OFFSET), Platform.getLong(bytes, Platform.BYTE_ARRAY_OFFSET + 8))
  private def bytesOf(totals: Array[Long]): Array[Byte] = {
    val bytes = new Array[Byte](16)
    Platform.putLong(bytes, Platform.BYTE_ARRAY_OFFSET, totals(0))
    Platform.putLong(bytes, Platform.BYTE_ARRAY_OFFSET + 8, totals(1))
    bytes
  }
}
