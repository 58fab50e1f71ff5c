package penstock.kernel.engine

import java.util.Comparator
import org.apache.spark.sql.catalyst.expressions.{BasePredicate, Expression, JoinedRow, Predicate, UnsafeRow}
import org.apache.spark.unsafe.Platform
import penstock.kernel.state.{Entries, State}

/** Inner join of two inputs on their key, with a condition on top.
  *
  * In: changes of the left rows (port 0) and the right rows (port 1) of one key.
  * State: collection 0 the left rows, 1 the right rows, each with its weight, stamp and place.
  * Out: a change for every pair that a change makes or breaks; the later place and the smaller stamp of the two.
  */
case class Join(id: Int, keyWidth: Int, widths: (Int, Int), condition: Option[Expression], edges: Seq[Edge]) extends Operator {
  override def orders: Array[Comparator[Array[Byte]]] = Array(Operator.Bytes, Operator.Bytes)

  @transient private lazy val predicate: BasePredicate = condition.map { c =>
    val made = Predicate.create(c)
    made.initialize(0)
    made
  }.orNull
  @transient private lazy val sides = Array(new UnsafeRow(widths._1), new UnsafeRow(widths._2))
  @transient private lazy val pair = new JoinedRow()

  override def run(key: UnsafeRow, rows: Rows, state: State, out: Output): Unit = {
    rows.consolidate()
    val held = Array(state.entries(0), state.entries(1))
    var i = 0
    while (i < rows.size) {
      val envelope = rows(i)
      val port = Envelope.port(envelope)
      Envelope.read(envelope, sides(port))
      matches(envelope, port, held(1 - port), out)
      Join.count(held(port), envelope)
      i += 1
    }
  }

  private def matches(envelope: Array[Byte], port: Int, others: Entries, out: Output): Unit = {
    val cursor = others.ascending
    val other = sides(1 - port)
    while (cursor.next()) {
      val row = cursor.key
      other.pointTo(row, row.length)
      pair(sides(0), sides(1))
      if (predicate == null || predicate.eval(pair)) {
        val tally = cursor.value
        out.emit(
          pair,
          Envelope.weight(envelope) * Tally.weight(tally),
          math.min(Envelope.stamp(envelope), Tally.stamp(tally)),
          math.max(Envelope.place(envelope), Tally.place(tally)))
      }
    }
  }
}

object Join {
  /** Takes a change into a collection of rows with their tallies. */
  def count(held: Entries, envelope: Array[Byte]): Unit = {
    val row = java.util.Arrays.copyOfRange(envelope, Envelope.rowStart(envelope), envelope.length)
    val old = held.get(row)
    val weight = Envelope.weight(envelope) + (if (old == null) 0 else Tally.weight(old))
    if (weight == 0) held.remove(row)
    else if (old != null && Tally.place(old) > Envelope.place(envelope)) held.put(row, Tally.of(weight, Tally.stamp(old), Tally.place(old)))
    else held.put(row, Tally.of(weight, Envelope.stamp(envelope), Envelope.place(envelope)))
  }
}

/** How often a row is there, and the stamp and place of its last change: 24 bytes. */
object Tally {
  private val Base = Platform.BYTE_ARRAY_OFFSET
  def of(weight: Long, stamp: Long, place: Long): Array[Byte] = {
    val bytes = new Array[Byte](24)
    Platform.putLong(bytes, Base, weight)
    Platform.putLong(bytes, Base + 8, stamp)
    Platform.putLong(bytes, Base + 16, place)
    bytes
  }
  def weight(tally: Array[Byte]): Long = Platform.getLong(tally, Base)
  def stamp(tally: Array[Byte]): Long = Platform.getLong(tally, Base + 8)
  def place(tally: Array[Byte]): Long = Platform.getLong(tally, Base + 16)
}
