package penstock.kernel.engine

import java.nio.ByteBuffer
import java.util.{ArrayList, Arrays, Comparator}
import org.apache.spark.sql.catalyst.expressions.{JoinedRow, SpecificInternalRow, UnsafeRow}
import org.apache.spark.sql.types.LongType
import penstock.kernel.state.{Entries, State}

/** Which session every row of a key belongs to: those whose times, from a row's own to the end of its gap, touch are one session.
  *
  * In: changes of the rows; at `window` stands a struct of the row's time and the end of its gap.
  * State: collection 0, the rows in the order of their times, each with its tally; collection 1, the sessions, start -> end.
  * Out: each row and the start of its session, whenever that changes; a session that grows at its end changes no row that it had. The place
  * and the stamp are the row's own.
  */
final case class Sessions(id: Int, keyWidth: Int, width: Int, window: Int, edges: Seq[Edge], dating: Option[Dating]) extends Dated {
  override def orders: Array[Comparator[Array[Byte]]] = Array(Operator.Bytes, Operator.Bytes)

  @transient private lazy val row = new UnsafeRow(width)
  @transient private lazy val started = new SpecificInternalRow(Seq(LongType))
  @transient private lazy val joined = new JoinedRow()

  override def run(key: UnsafeRow, rows: Rows, state: State, out: Output): Unit =
    run(key, rows, state, Windows.None, Windows.None, Deadline.Ignored, out)

  override def run(key: UnsafeRow, rows: Rows, state: State, before: Long, now: Long, deadline: Deadline, out: Output): Unit = {
    val held = new Held(state)
    val from = held.deadline
    rows.consolidate()
    zones(rows, held).forEach(zone => if (zone.grows) grow(zone, held, out) else divide(zone, held, out))
    held.free(now)
    deadline.move(from, held.deadline)
  }

  /** The changes, those together that touch each other or the same sessions. */
  private def zones(rows: Rows, held: Held): ArrayList[Zone] = {
    val changes = Array.tabulate(rows.size)(i => new Change(rows(i)))
    Arrays.sort(changes, (a: Change, b: Change) => java.lang.Long.compare(a.start, b.start))
    val found = new ArrayList[Zone]()
    changes.foreach { change =>
      val last = if (found.isEmpty) null else found.get(found.size - 1)
      if (last != null && change.start <= last.end) last.add(change, held)
      else {
        val zone = new Zone(change.start, change.end)
        zone.add(change, held)
        found.add(zone)
      }
    }
    found
  }

  /** Rows have only come: all that touches is one session now. */
  private def grow(zone: Zone, held: Held, out: Output): Unit = {
    zone.sessions.forEach { session =>
      held.sessions.remove(Sessions.bytes(session.start))
      if (session.start != zone.start) held.each(session.start, session.end) { (row, tally) => move(row, tally, session.start, zone.start, out) }
    }
    held.sessions.put(Sessions.bytes(zone.start), Sessions.bytes(zone.end))
    zone.changes.forEach { change =>
      emit(change.envelope, zone.start, out)
      Tally.count(held.rows, Sessions.keyed(change.start, change.row), change.envelope, -1)
    }
  }

  /** Rows have left, too: sessions may fall apart. */
  private def divide(zone: Zone, held: Held, out: Output): Unit = {
    val before = zone.sessions
    zone.changes.forEach { change => if (Envelope.weight(change.envelope) < 0) emit(change.envelope, startOf(before, change.start), out) }
    val gone = new java.util.HashMap[Bytes, Array[Byte]]()
    zone.changes.forEach { change =>
      val at = Sessions.keyed(change.start, change.row)
      gone.put(new Bytes(at), held.rows.get(at))
      Tally.count(held.rows, at, change.envelope, -1)
    }
    before.forEach(session => held.sessions.remove(Sessions.bytes(session.start)))
    var start = 0L
    var end = Windows.None
    val made = new ArrayList[Session]()
    held.each(zone.start, zone.end) { (row, _) =>
      val (begins, ends) = timesOf(row)
      if (end == Windows.None || begins > end) {
        if (end != Windows.None) made.add(new Session(start, end))
        start = begins
        end = ends
      } else end = math.max(end, ends)
    }
    if (end != Windows.None) made.add(new Session(start, end))
    made.forEach(session => held.sessions.put(Sessions.bytes(session.start), Sessions.bytes(session.end)))
    zone.changes.forEach { change => if (Envelope.weight(change.envelope) > 0) emit(change.envelope, startOf(made, change.start), out) }
    held.each(zone.start, zone.end) { (row, tally) =>
      val (begins, _) = timesOf(row)
      val at = Sessions.keyed(begins, row)
      val changed = new Bytes(at)
      // Of a row that has changed, what was there and stays.
      val kept = if (!gone.containsKey(changed)) tally else stays(gone.get(changed), tally)
      if (kept != null) move(row, kept, startOf(before, begins), startOf(made, begins), out)
    }
  }

  private def stays(before: Array[Byte], now: Array[Byte]): Array[Byte] =
    if (before == null || now == null) null
    else Tally.of(math.min(Tally.weight(before), Tally.weight(now)), Tally.stamp(before), Tally.place(before))

  private def startOf(sessions: ArrayList[Session], time: Long): Long = {
    var at = sessions.size - 1
    while (sessions.get(at).start > time) at -= 1
    sessions.get(at).start
  }

  private def move(bytes: Array[Byte], tally: Array[Byte], from: Long, to: Long, out: Output): Unit = if (from != to) {
    row.pointTo(bytes, bytes.length)
    out.emit(withStart(from), -Tally.weight(tally), Tally.stamp(tally), Tally.place(tally))
    out.emit(withStart(to), Tally.weight(tally), Tally.stamp(tally), Tally.place(tally))
  }

  private def emit(envelope: Array[Byte], start: Long, out: Output): Unit = {
    Envelope.read(envelope, row)
    out.emit(withStart(start), Envelope.weight(envelope), Envelope.stamp(envelope), Envelope.place(envelope))
  }

  private def withStart(start: Long): JoinedRow = {
    started.setLong(0, start)
    joined(row, started)
  }

  private def timesOf(bytes: Array[Byte]): (Long, Long) = {
    row.pointTo(bytes, bytes.length)
    val times = row.getStruct(window, 2)
    (times.getLong(0), times.getLong(1))
  }

  private final class Session(val start: Long, val end: Long)

  private final class Change(val envelope: Array[Byte]) {
    val row: Array[Byte] = Envelope.row(envelope)
    val (start, end) = timesOf(row)
  }

  /** A stretch of time in which sessions may change: changes, and the sessions that there were, in order. */
  private final class Zone(var start: Long, var end: Long) {
    val changes = new ArrayList[Change]()
    val sessions = new ArrayList[Session]()
    def grows: Boolean = changes.stream.allMatch(change => Envelope.weight(change.envelope) > 0)

    def add(change: Change, held: Held): Unit = {
      changes.add(change)
      end = math.max(end, change.end)
      meet(held)
    }

    /** Takes in the sessions that touch it. */
    private def meet(held: Held): Unit = {
      if (sessions.isEmpty) {
        val earlier = held.sessions.before(Sessions.bytes(start))
        if (earlier.next() && Sessions.time(earlier.value) >= start) take(Sessions.time(earlier.key), Sessions.time(earlier.value))
      }
      val known = if (sessions.isEmpty) start - 1 else sessions.get(sessions.size - 1).start
      val later = held.sessions.after(Sessions.bytes(known))
      while (later.next() && Sessions.time(later.key) <= end) take(Sessions.time(later.key), Sessions.time(later.value))
    }

    private def take(from: Long, until: Long): Unit = {
      sessions.add(new Session(from, until))
      start = math.min(start, from)
      end = math.max(end, until)
    }
  }

  /** What is kept for a key. */
  private final class Held(state: State) {
    val rows: Entries = state.entries(0)
    val sessions: Entries = state.entries(1)

    /** The rows whose times are from `start` to `end`. */
    def each(start: Long, end: Long)(visit: (Array[Byte], Array[Byte]) => Unit): Unit = {
      val cursor = rows.from(Sessions.bytes(start))
      while (cursor.next() && Sessions.time(cursor.key) <= end) visit(Arrays.copyOfRange(cursor.key, 8, cursor.key.length), cursor.value)
    }

    def deadline: Long = dating.fold(Deadline.Never) { how =>
      val cursor = sessions.ascending
      if (cursor.next()) Sessions.over(Sessions.time(cursor.value), how) else Deadline.Never
    }

    /** Forgets the sessions that are over for good. */
    def free(now: Long): Unit = dating.foreach { how =>
      val cursor = sessions.ascending
      while (cursor.next() && Sessions.over(Sessions.time(cursor.value), how) <= now) {
        val (start, end) = (Sessions.time(cursor.key), Sessions.time(cursor.value))
        val gone = rows.from(Sessions.bytes(start))
        while (gone.next() && Sessions.time(gone.key) <= end) rows.remove(gone.key)
        sessions.remove(cursor.key)
      }
    }
  }
}

object Sessions {
  /** When a session that ends at `end` is complete: a row whose time is the end still belongs to it. */
  def complete(end: Long, how: Dating): Long = Timeline.after(end, 1 + how.delay)

  /** When no row can correct it any more. */
  def over(end: Long, how: Dating): Long = Timeline.after(complete(end, how), how.allowed)

  private[engine] def bytes(time: Long): Array[Byte] = ByteBuffer.allocate(8).putLong(time ^ Long.MinValue).array
  private[engine] def time(bytes: Array[Byte]): Long = ByteBuffer.wrap(bytes).getLong ^ Long.MinValue
  private def keyed(time: Long, row: Array[Byte]): Array[Byte] = ByteBuffer.allocate(8 + row.length).putLong(time ^ Long.MinValue).put(row).array
}
