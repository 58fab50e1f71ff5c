package penstock.kernel.engine

import java.util.{LinkedHashMap => JavaMap}
import penstock.kernel.state.Entries

/** The rows of a window's partition during one batch, in their order, and what was kept for those that have changed since it began. */
final class Partition(val entries: Entries, frames: Int) {
  private val before = new JavaMap[Bytes, Array[Byte]]()
  /** How often the columns of a row were computed. */
  var evaluated = 0L

  /** Takes a change into the rows. */
  def change(row: Array[Byte], envelope: Array[Byte]): Unit = {
    val old = entries.get(row)
    val weight = Envelope.weight(envelope) + (if (old == null) 0L else Tally.weight(old))
    if (weight < 0) throw new IllegalStateException("a row left a window more often than it had come")
    remember(row, old)
    if (weight == 0) entries.remove(row)
    else {
      val older = old != null && Tally.place(old) > Envelope.place(envelope)
      val tally = if (older) Tally.of(weight, Tally.stamp(old), Tally.place(old)) else Tally.of(weight, Envelope.stamp(envelope), Envelope.place(envelope))
      entries.put(row, if (old == null) WindowRow.fresh(tally, frames) else WindowRow.withTally(old, tally))
    }
  }

  /** Replaces a section of the row where the walk stands; whether it was equal already. */
  def put(at: Steps, section: Int, bytes: Array[Byte]): Boolean = {
    val old = at.kept
    val same = WindowRow.sectionIs(old, section, bytes)
    if (!same) {
      remember(at.row, old)
      at.kept = WindowRow.withSection(old, section, bytes)
    }
    same
  }

  private def remember(row: Array[Byte], old: Array[Byte]): Unit = {
    val key = new Bytes(row)
    if (!before.containsKey(key)) before.put(key, old)
  }

  def hasChanged(row: Array[Byte]): Boolean = before.containsKey(new Bytes(row))

  /** Visits the rows that have changed, with what was kept before and what is kept now; null where the row was not or is not there. */
  def changed(visit: (Array[Byte], Array[Byte], Array[Byte]) => Unit): Unit =
    before.forEach((row, old) => visit(row.bytes, old, entries.get(row.bytes)))
}
