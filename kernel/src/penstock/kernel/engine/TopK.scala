package penstock.kernel.engine

import java.util.{Comparator, LinkedHashMap => JavaMap}
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import penstock.kernel.state.{Entries, State}

/** The first rows of each key: `limit` of them in `order`, after the first `offset`; a row counts as often as it is there. Where `counted` is not by rows,
  * peers are there together or not at all.
  *
  * In: changes of one key's rows. State: collection 0, the rows in order with their tallies: all of them, since one that leaves may bring up
  * any other; where the input is `growing`, no more than the answer needs.
  * Out: the rows that came into the answer or left it, retractions before assertions. The place is that of the last change, the stamp that of the row itself.
  */
final case class TopK(
    id: Int, keyWidth: Int, order: RowOrder, limit: Long, offset: Long, growing: Boolean, edges: Seq[Edge], counted: Counted = Counted.Rows,
    override val timing: Option[Timing] = None)
    extends Operator {
  override def orders: Array[Comparator[Array[Byte]]] = Array(order)

  private val needed: Long = if (limit > Long.MaxValue - offset) Long.MaxValue else limit + offset
  @transient private lazy val row = new UnsafeRow(order.width)

  override def run(key: UnsafeRow, rows: Rows, state: State, out: Output): Unit = {
    if (growing && needed == 1 && offset == 0 && counted == Counted.Rows) renew(rows, state.entries(0), out)
    else {
      rows.consolidate()
      if (rows.size > 0) replace(rows, state.entries(0), out)
    }
  }

  /** The very first row, where rows only come: the first of those that came takes the place of the one that is there, or not. */
  private def renew(rows: Rows, held: Entries, out: Output): Unit = {
    val came = first(rows)
    val best = Envelope.row(came)
    val cursor = held.ascending
    val known = cursor.next()
    if (!known || order.total(best, cursor.key) < 0) {
      val place = rows.lastPlace
      if (known) {
        val (old, stamp) = (cursor.key, Tally.stamp(cursor.value))
        held.remove(old)
        emit(old, -1, stamp, place, out)
      }
      held.put(best, Tally.of(1, Envelope.stamp(came), Envelope.place(came)))
      emit(best, 1, Envelope.stamp(came), place, out)
    }
  }

  /** The envelope with the first row; of equal rows the one whose stamp counts. */
  private def first(rows: Rows): Array[Byte] = {
    var best = rows(0)
    checkComes(best)
    var i = 1
    while (i < rows.size) {
      val each = rows(i)
      checkComes(each)
      val compared = order.total(Envelope.row(each), Envelope.row(best))
      val later = compared == 0 && Tally.isLater(Envelope.place(each), Envelope.stamp(each), Envelope.place(best), Envelope.stamp(best))
      if (compared < 0 || later) best = each
      i += 1
    }
    best
  }

  private def checkComes(envelope: Array[Byte]): Unit =
    if (Envelope.weight(envelope) < 0) throw new IllegalStateException("a row left an input that only grows")

  private def replace(rows: Rows, held: Entries, out: Output): Unit = {
    val answers = new JavaMap[Bytes, Placed]()
    val last = answer(held, -1, answers)
    var i = 0
    while (i < rows.size) {
      change(held, rows(i), last)
      i += 1
    }
    if (growing) trim(held)
    answer(held, 1, answers)
    val place = rows.lastPlace
    answers.forEach((bytes, each) => if (each.weight < 0) emit(bytes.bytes, each.weight, each.stamp, place, out))
    answers.forEach((bytes, each) => if (each.weight > 0) emit(bytes.bytes, each.weight, each.stamp, place, out))
  }

  /** Adds the copies of each row in the answer, times `sign`; returns the last row that is needed, null where more would be. */
  private def answer(held: Entries, sign: Long, answers: JavaMap[Bytes, Placed]): Array[Byte] = {
    val cursor = held.ascending
    val taking = new Taking(counted, order, needed)
    while (taking.open && cursor.next()) {
      val tally = cursor.value
      val before = taking.rows
      val taken = taking.take(cursor.key, Tally.weight(tally))
      val copies = before + taken - math.max(offset, before)
      if (copies > 0) answers.computeIfAbsent(new Bytes(cursor.key), _ => new Placed).add(sign * copies, Tally.stamp(tally))
    }
    if (taking.full) taking.last else null
  }

  private def change(held: Entries, envelope: Array[Byte], last: Array[Byte]): Unit =
    if (!growing) Tally.count(held, envelope)
    else {
      checkComes(envelope)
      if (last == null || precedes(Bytes.ofRow(envelope).bytes, last)) Tally.count(held, envelope)
    }

  private def precedes(row: Array[Byte], last: Array[Byte]): Boolean =
    if (counted == Counted.Rows) order.total(row, last) < 0 else order.compare(row, order.peers(last, RowOrder.After)) < 0

  /** Takes away what lies beyond the last row that is needed, and those of its copies that are not. */
  private def trim(held: Entries): Unit = {
    val cursor = held.ascending
    val taking = new Taking(counted, order, needed)
    while (cursor.next()) {
      val tally = cursor.value
      val kept = taking.take(cursor.key, Tally.weight(tally))
      if (kept == 0) held.remove(cursor.key)
      else if (kept < Tally.weight(tally)) cursor.value = Tally.of(kept, Tally.stamp(tally), Tally.place(tally))
    }
  }

  private def emit(bytes: Array[Byte], weight: Long, stamp: Long, place: Long, out: Output): Unit = {
    row.pointTo(bytes, bytes.length)
    out.emit(row, weight, stamp, place)
  }
}

/** How many copies of a row came into an answer, or left it, and the row's stamp. */
final class Placed {
  var weight = 0L
  var stamp = 0L
  def add(copies: Long, itsStamp: Long): Unit = {
    weight += copies
    stamp = itsStamp
  }
}
