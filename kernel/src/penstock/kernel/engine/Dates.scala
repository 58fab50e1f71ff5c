package penstock.kernel.engine

import java.nio.ByteBuffer
import java.util.{ArrayList, Arrays, Map => JavaMap}
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform
import penstock.kernel.state.{Entries, Key, PageStore, Slot, WindowPages}

/** An operator whose keys have deadlines, at work on one slot.
  *
  * In: rows by key, and how far the clocks of the streams beneath have come: after all rows of the batch.
  * State: how far the clocks were, and how many sessions are open; the keys' own state; and the keys that wait for a time, in the order of these times.
  * Out: what the operator gives for keys that got rows, then for those whose time has come.
  */
final class Dates(operator: Dated, clocks: Int, pageLimit: Int) {
  private val orders = operator.orders
  private val sums = operator.sums
  private val key = new UnsafeRow(operator.keyWidth)

  /** `ticks` has the new times of the first clocks, `Windows.None` where there is none; `steps`, how they came there, where that was told. `open` is told how
    * many sessions are open then.
    */
  def run(
      inbox: JavaMap[Key, Rows], ticks: Array[Long], pages: PageStore, out: Output, steps: Array[Array[Byte]] = Dates.NoSteps,
      open: Open => Unit = _ => ()): Unit = {
    val stored = pages.header
    val times = Agenda.read(if (stored == null) null else Arrays.copyOf(stored, 8 * clocks), clocks)
    val sessions = new Sum(if (stored == null || !operator.hasSessions) 0 else ByteBuffer.wrap(stored).getLong(8 * clocks))
    val before = times.watermark
    operator.hear(new Watermarks(times.each, steps))
    times.advance(ticks)
    val now = times.watermark
    val slot = new Slot(new WindowPages(pages, Dates.Keys), pageLimit, orders, sums)
    val book = new Slot(new WindowPages(pages, Dates.Waiting), pageLimit, Array(Operator.Bytes))
    val waiting = book.state(Dates.All).entries(0)
    def look(at: Key, rows: Rows): Unit = {
      key.pointTo(at.bytes, Platform.BYTE_ARRAY_OFFSET + at.offset, at.length)
      operator.run(key, rows, slot.state(at), before, now, new Booking(waiting, at, sessions), out)
    }
    inbox.entrySet.forEach(entry => look(entry.getKey, entry.getValue))
    if (now > before) due(waiting, now).forEach(each => look(each, Dates.NoRows))
    slot.close()
    book.close()
    if (operator.hasSessions) open(OpenSessions(sessions.value))
    val bytes = header(times, sessions.value)
    if (!Arrays.equals(bytes, stored)) pages.header = bytes
  }

  /** `[each clock 8][how many sessions are open 8]`, the latter where there are sessions; nothing where no clock has a time and no session is open. */
  private def header(times: Agenda, sessions: Long): Array[Byte] =
    if (!operator.hasSessions || (sessions == 0 && times.bytes == null)) times.bytes
    else {
      val made = ByteBuffer.allocate(8 * (clocks + 1))
      times.each.foreach(made.putLong)
      made.putLong(sessions).array
    }

  /** The keys whose time is `now` or before. */
  private def due(waiting: Entries, now: Long): ArrayList[Key] = {
    val found = new ArrayList[Key]()
    val cursor = waiting.ascending
    while (cursor.next() && Booking.time(cursor.key) <= now) found.add(Booking.key(cursor.key))
    found
  }
}

private object Dates {
  val Keys = 0L
  val Waiting = 1L
  val NoRows = new Rows
  val NoSteps = Array.empty[Array[Byte]]
  /** Those who wait are entries of one key. */
  val All = new Key(Array.emptyByteArray, 0, 0, 0L)
}

private final class Sum(var value: Long)

/** A key among those that wait: `[time 8][the key]`, in the order of the bytes. */
private final class Booking(waiting: Entries, key: Key, sessions: Sum) extends Deadline {
  override def opened(more: Int): Unit = sessions.value += more
  override def move(from: Long, to: Long): Unit = if (from != to) {
    if (from != Deadline.Never) waiting.remove(Booking.bytes(from, key))
    if (to != Deadline.Never) waiting.put(Booking.bytes(to, key), Array.emptyByteArray)
  }
}

private object Booking {
  def bytes(time: Long, key: Key): Array[Byte] =
    ByteBuffer.allocate(8 + key.length).putLong(time ^ Long.MinValue).put(key.bytes, key.offset, key.length).array
  def time(bytes: Array[Byte]): Long = ByteBuffer.wrap(bytes).getLong ^ Long.MinValue
  def key(bytes: Array[Byte]): Key = new Key(bytes, 8, bytes.length - 8, Envelope.hashOf(bytes, Platform.BYTE_ARRAY_OFFSET + 8, bytes.length - 8))
}
