package penstock.kernel.engine

import java.nio.ByteBuffer
import java.util.{ArrayList, Arrays, Comparator, HashSet}
import org.apache.spark.sql.catalyst.expressions.{JoinedRow, SpecificInternalRow, UnsafeRow}
import org.apache.spark.sql.types.LongType
import penstock.kernel.state.{Entries, State}

/** Keeps an aggregate's answer for each session of a key where rows only come, and what two sessions gathered can be put together.
  *
  * In: rows, what the folds read of them, and behind that their time and the end of their gap. Those whose times touch are one session.
  * State: collection 0, the sessions, start -> `[end 8][what the folds gathered]`; no rows. A session that is over for good is forgotten.
  * Out: the answers of sessions that rows made, moved or merged; with `waits`, of those that are complete. One that was complete and is joined by a
  * late row is taken back, and waits again.
  *
  * @param aggregate has the key and the start of the session as its key
  */
final case class GrowingSessions(aggregate: Aggregate, dating: Option[Dating]) extends Dated {
  override def id: Int = aggregate.id
  override def keyWidth: Int = aggregate.keyWidth - 1
  override def edges: Seq[Edge] = aggregate.edges
  override def orders: Array[Comparator[Array[Byte]]] = Array(Operator.Bytes)
  override def hasSessions: Boolean = true

  private val width = aggregate.gathering.width
  private val waits = dating.exists(_.waits)
  @transient private lazy val row = new UnsafeRow(width + 2)
  @transient private lazy val started = new SpecificInternalRow(Seq(LongType))
  @transient private lazy val joined = new JoinedRow()
  /** No fold has collections. */
  @transient private lazy val nothing = aggregate.gathering.folds.map(_ => Array.empty[Entries]).toArray

  override def run(key: UnsafeRow, rows: Rows, state: State, out: Output): Unit =
    run(key, rows, state, Windows.None, Windows.None, Deadline.Ignored, out)

  override def run(key: UnsafeRow, rows: Rows, state: State, before: Long, now: Long, deadline: Deadline, out: Output): Unit = {
    val sessions = state.entries(0)
    val from = deadlineOf(sessions, before)
    val batch = new Batch(key, rows, sessions, before, out)
    batch.grow()
    batch.close(now)
    deadline.move(from, deadlineOf(sessions, now))
    deadline.opened(batch.more)
  }

  private def isShown(end: Long, watermark: Long): Boolean = !waits || Sessions.complete(end, dating.get) <= watermark

  /** Sessions end in the order in which they start: of those that are shown the first is forgotten first, of the others the first is complete first. */
  private def deadlineOf(sessions: Entries, watermark: Long): Long = dating.fold(Deadline.Never) { how =>
    var found = Deadline.Never
    var open = true
    val cursor = sessions.ascending
    while (open && cursor.next()) {
      val end = GrowingSessions.end(cursor.value)
      open = isShown(end, watermark) && waits
      found = math.min(found, if (isShown(end, watermark)) Sessions.over(end, how) else Sessions.complete(end, how))
    }
    found
  }

  private final class Change(envelope: Array[Byte], val start: Long, val end: Long) {
    def gather(into: Gathered): Unit = aggregate.gathering.add(into, Envelope.read(envelope, row), Envelope.weight(envelope))
  }

  /** The rows of one key in one batch. */
  private final class Batch(key: UnsafeRow, rows: Rows, sessions: Entries, before: Long, out: Output) {
    /** The starts of sessions that rows have come to. */
    private val fresh = new HashSet[Long]()
    /** How many more sessions there are than before. */
    var more = 0

    /** Every stretch of rows that touch each other, with the sessions that it touches, is one session. */
    def grow(): Unit = {
      val changes = Array.tabulate(rows.size) { i =>
        Envelope.read(rows(i), row)
        new Change(rows(i), row.getLong(width), row.getLong(width + 1))
      }
      Arrays.sort(changes, (a: Change, b: Change) => java.lang.Long.compare(a.start, b.start))
      var i = 0
      while (i < changes.length) {
        val made = new Made(changes(i))
        i += 1
        while (i < changes.length && changes(i).start <= made.end) {
          made.add(changes(i))
          i += 1
        }
        made.store()
      }
    }

    /** Shows what is complete now, and forgets what is over for good. */
    def close(now: Long): Unit = dating.foreach { how =>
      val cursor = sessions.ascending
      while (cursor.next() && Sessions.complete(GrowingSessions.end(cursor.value), how) <= now) {
        val (start, end) = (Sessions.time(cursor.key), GrowingSessions.end(cursor.value))
        if (waits && (fresh.contains(start) || !isShown(end, before))) out.emit(answer(start, read(cursor.value)), 1, rows.lastStamp, rows.lastPlace)
        if (Sessions.over(end, how) <= now) {
          sessions.remove(cursor.key)
          more -= 1
        }
      }
    }

    /** A session that rows have come to, as it becomes. */
    private final class Made(first: Change) {
      private var start = first.start
      var end: Long = first.end
      private val gathered = aggregate.gathering.fresh()
      private val met = new ArrayList[(Long, Array[Byte])]()
      first.gather(gathered)
      private val earlier = sessions.to(Sessions.bytes(start))
      if (earlier.next() && GrowingSessions.end(earlier.value) >= start) take(earlier.key, earlier.value)
      meet()

      def add(change: Change): Unit = {
        change.gather(gathered)
        if (change.end > end) {
          end = change.end
          meet()
        }
      }

      /** Takes in the sessions that begin before it ends. */
      private def meet(): Unit = {
        val later = sessions.after(Sessions.bytes(if (met.isEmpty) start else met.get(met.size - 1)._1))
        while (later.next() && Sessions.time(later.key) <= end) take(later.key, later.value)
      }

      private def take(at: Array[Byte], value: Array[Byte]): Unit = {
        met.add((Sessions.time(at), value))
        start = math.min(start, Sessions.time(at))
        end = math.max(end, GrowingSessions.end(value))
        aggregate.gathering.merge(gathered, read(value))
      }

      def store(): Unit = {
        val now = if (waits) null else answer(start, gathered).copy()
        var same = false
        met.forEach { case (at, value) =>
          if (isShown(GrowingSessions.end(value), before)) {
            val was = answer(at, read(value))
            same = met.size == 1 && was == now
            if (!same) out.emit(was, -1, rows.lastStamp, rows.lastPlace)
          }
          if (at != start) sessions.remove(Sessions.bytes(at))
        }
        if (!waits && !same) out.emit(now, 1, rows.lastStamp, rows.lastPlace)
        fresh.add(start)
        more += 1 - met.size
        val bytes = aggregate.gathering.write(gathered)
        sessions.put(Sessions.bytes(start), ByteBuffer.allocate(8 + bytes.length).putLong(end).put(bytes).array)
      }
    }

    private def read(value: Array[Byte]): Gathered = aggregate.gathering.read(value, 8, value.length - 8)

    private def answer(start: Long, gathered: Gathered): UnsafeRow = {
      started.setLong(0, start)
      aggregate.answer(joined(key, started), gathered, nothing)
    }
  }
}

object GrowingSessions {
  private def end(value: Array[Byte]): Long = ByteBuffer.wrap(value).getLong
}
