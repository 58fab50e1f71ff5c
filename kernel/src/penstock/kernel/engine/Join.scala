package penstock.kernel.engine

import java.util.Comparator
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BasePredicate, Expression, GenericInternalRow, JoinedRow, Predicate, UnsafeRow}
import org.apache.spark.unsafe.Platform
import penstock.kernel.state.{Cursor, Entries, State}

/** Join of two inputs on their key, with a condition on top.
  *
  * In: changes of the left rows (port 0) and the right rows (port 1) of one key, none of which is NULL.
  * State: collection 0 the left rows, 1 the right rows, each with its tally; how often it has a partner is kept with the row where a condition
  * decides it, else it is the number of rows on the other side, kept as the key's value. Where only that number matters, rows are not kept.
  * Out: a change for every pair that a change makes or breaks, and for every row that finds its first or loses its last partner, as the kind of
  * join says; the later place and the smaller stamp of the two.
  */
case class Join(
    id: Int, keyWidth: Int, kind: JoinKind, widths: (Int, Int), condition: Option[Expression], ranges: (Option[Span], Option[Span]), edges: Seq[Edge])
    extends Operator {
  override def orders: Array[Comparator[Array[Byte]]] =
    Array(ranges._1.map(_.order(widths._1)).getOrElse(Operator.Bytes), ranges._2.map(_.order(widths._2)).getOrElse(Operator.Bytes))

  @transient private lazy val predicate: BasePredicate = condition.map { c =>
    val made = Predicate.create(c)
    made.initialize(0)
    made
  }.orNull
  @transient private lazy val bounds = Array(ranges._1.map(new Bounds(_, widths._1)).orNull, ranges._2.map(new Bounds(_, widths._2)).orNull)
  @transient private lazy val sides = Array(new UnsafeRow(widths._1), new UnsafeRow(widths._2))
  @transient private lazy val nothing = Array[InternalRow](new GenericInternalRow(widths._1), new GenericInternalRow(widths._2))
  @transient private lazy val pair = new JoinedRow()
  private val watched = Array(kind.watchesLeft, kind.watchesRight)
  /** Whether the rows of a side are kept: those on the right only where somebody sees them. */
  private val kept = Array(true, kind.pairs || condition.isDefined)
  private val counted = condition.isEmpty && (kind.watchesLeft || kind.watchesRight)

  override def run(key: UnsafeRow, rows: Rows, state: State, out: Output): Unit = {
    rows.consolidate()
    val held = Array(state.entries(0), state.entries(1))
    val totals = if (counted) Join.totals(state.value) else Join.NoTotals
    // Rows that come are taken before rows that go: what is replaced never seems to be missing in between.
    pass(rows, coming = true, held, totals, out)
    pass(rows, coming = false, held, totals, out)
    if (counted) state.value = if (totals(0) == 0 && totals(1) == 0) null else Join.bytesOf(totals)
  }

  private def pass(rows: Rows, coming: Boolean, held: Array[Entries], totals: Array[Long], out: Output): Unit = {
    var i = 0
    while (i < rows.size) {
      val envelope = rows(i)
      if (Envelope.weight(envelope) > 0 == coming) take(envelope, Envelope.port(envelope), held, totals, out)
      i += 1
    }
  }

  private def take(envelope: Array[Byte], port: Int, held: Array[Entries], totals: Array[Long], out: Output): Unit = {
    Envelope.read(envelope, sides(port))
    val weight = Envelope.weight(envelope)
    val matches = meet(envelope, port, held(1 - port), totals, out)
    if (watched(port)) emit(port, matches > 0, weight, Envelope.stamp(envelope), Envelope.place(envelope), out)
    if (kept(port)) Join.count(held(port), envelope, if (watched(port) && condition.isDefined) matches else -1)
    if (counted) totals(port) += weight
  }

  /** Goes to the rows of the other side; how many matched. */
  private def meet(envelope: Array[Byte], port: Int, others: Entries, totals: Array[Long], out: Output): Long = {
    val weight = Envelope.weight(envelope)
    val turns = counted && watched(1 - port) && (totals(port) == 0 || totals(port) + weight == 0)
    if (kind.pairs || condition.isDefined || turns) {
      val other = sides(1 - port)
      val bound = bounds(1 - port)
      val cursor = if (bound == null) others.ascending else bound.start(sides(port), others)
      var matched = 0L
      while (cursor != null && cursor.next() && (bound == null || bound.within(cursor.key))) {
        other.pointTo(cursor.key, cursor.key.length)
        if (predicate == null || predicate.eval(pair(sides(0), sides(1)))) {
          matched += Tally.weight(cursor.value)
          matching(envelope, port, cursor, turns, out)
        }
      }
      matched
    } else totals(1 - port)
  }

  private def matching(envelope: Array[Byte], port: Int, cursor: Cursor, turns: Boolean, out: Output): Unit = {
    val tally = cursor.value
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

  /** What a row of `port` gives besides pairs, with or without a partner. */
  private def emit(port: Int, partner: Boolean, weight: Long, stamp: Long, place: Long, out: Output): Unit = kind match {
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
  private val Yes = InternalRow(true)
  private val No = InternalRow(false)

  /** Takes a change into a collection of rows with their tallies; `matches` is -1 where they are not counted. */
  def count(held: Entries, envelope: Array[Byte], matches: Long = -1): Unit = {
    val row = java.util.Arrays.copyOfRange(envelope, Envelope.rowStart(envelope), envelope.length)
    val old = held.get(row)
    val weight = Envelope.weight(envelope) + (if (old == null) 0 else Tally.weight(old))
    if (weight == 0) held.remove(row)
    else if (old != null && Tally.place(old) > Envelope.place(envelope)) held.put(row, Tally.of(weight, Tally.stamp(old), Tally.place(old), matches))
    else held.put(row, Tally.of(weight, Envelope.stamp(envelope), Envelope.place(envelope), matches))
  }

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
