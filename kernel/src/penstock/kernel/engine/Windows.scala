package penstock.kernel.engine

import java.nio.ByteBuffer
import java.util.{ArrayList, Map => JavaMap, TreeMap, TreeSet}
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform
import penstock.kernel.state.{Key, PageStore, Slot, WindowPages}
import scala.jdk.CollectionConverters._

/** Who takes the rows of a slot and hears how far clocks have come. */
trait Clocked {
  /** `ticks` has the new times of the first clocks, `Windows.None` where there is none; `open` is told which windows are open then. */
  def run(inbox: JavaMap[Key, Rows], ticks: Array[Long], pages: PageStore, open: Spans => Unit, out: Output): Unit
}

/** An operator with windows, at work on one slot.
  *
  * In: rows by key, and how far the clocks of the streams beneath have come: after all rows of the batch.
  * State: the agenda; and for every window a slot of pages of its own, which goes as a whole.
  * Out: changes, as the operator gives them; of windows that wait, all rows at once when they are complete. A window is complete in the batch in
  * which the watermark comes to its end.
  */
final class Windows(operator: Operator, timing: Timing, pageLimit: Int) extends Clocked {
  private val patient = operator match {
    case waiting: Patient if timing.waits => waiting
    case _ => null
  }
  private val orders = operator.orders
  private val sums = operator.sums
  private val key = new UnsafeRow(operator.keyWidth)

  override def run(inbox: JavaMap[Key, Rows], ticks: Array[Long], pages: PageStore, open: Spans => Unit, out: Output): Unit = {
    val stored = pages.header
    val agenda = Agenda.read(stored, timing.clocks)
    val before = agenda.watermark
    agenda.advance(ticks)
    val now = agenda.watermark
    val coming = byWindow(inbox)
    val ends = new TreeSet[java.lang.Long](coming.keySet)
    if (now > before) ends.addAll(agenda.until(now))
    ends.forEach(end => window(end, coming.get(end), before, now, agenda, pages, out))
    open(Spans(1, agenda.windows.asScala.toArray.flatMap(end => Array(end.longValue, end.longValue))))
    val bytes = agenda.bytes
    if (!java.util.Arrays.equals(bytes, stored)) pages.header = bytes
  }

  private def window(
      end: Long, rows: ArrayList[JavaMap.Entry[Key, Rows]], before: Long, now: Long, agenda: Agenda, pages: PageStore, out: Output): Unit = {
    val slot = new Slot(new WindowPages(pages, end), pageLimit, orders, sums)
    val waiting = patient != null && end > before
    if (rows != null) rows.forEach { entry =>
      point(entry.getKey)
      if (waiting) patient.gather(key, entry.getValue, slot.state(entry.getKey)) else operator.run(key, entry.getValue, slot.state(entry.getKey), out)
    }
    if (waiting && end <= now) slot.foreach { (each, state) =>
      point(each)
      patient.show(key, state, out)
    }
    if (end <= now && end <= now - timing.allowed) {
      slot.drop()
      agenda.windows.remove(end)
    } else {
      slot.close()
      if (slot.keys == 0) agenda.windows.remove(end) else agenda.windows.add(end)
    }
  }

  private def byWindow(inbox: JavaMap[Key, Rows]): TreeMap[java.lang.Long, ArrayList[JavaMap.Entry[Key, Rows]]] = {
    val found = new TreeMap[java.lang.Long, ArrayList[JavaMap.Entry[Key, Rows]]]()
    inbox.entrySet.forEach { entry =>
      point(entry.getKey)
      found.computeIfAbsent(end, _ => new ArrayList()).add(entry)
    }
    found
  }

  private def point(to: Key): Unit = key.pointTo(to.bytes, Platform.BYTE_ARRAY_OFFSET + to.offset, to.length)

  /** A key without a window belongs to one that never ends. */
  private def end: Long =
    if (key.isNullAt(timing.window)) Long.MaxValue
    else Timeline.after(if (timing.struct) key.getStruct(timing.window, 2).getLong(1) else key.getLong(timing.window), timing.more)
}

object Windows {
  /** No time yet; less than every time. */
  val None: Long = Long.MinValue
}

/** What a slot of an operator with windows knows: how far each clock has come, and which windows have rows.
  *
  * `[each clock 8][the end of each window 8, ascending]`; nothing where no clock has a time and no window has rows.
  */
private[engine] final class Agenda(clocks: Array[Long], val windows: TreeSet[java.lang.Long]) {
  def watermark: Long = clocks.min
  def each: Array[Long] = clocks.clone

  /** A watermark never goes back. */
  def advance(ticks: Array[Long]): Unit = ticks.indices.foreach(i => clocks(i) = math.max(clocks(i), ticks(i)))

  /** The windows that end at `now` or before. */
  def until(now: Long): java.util.Collection[java.lang.Long] = new ArrayList(windows.headSet(now, true))

  def bytes: Array[Byte] =
    if (windows.isEmpty && clocks.forall(_ == Windows.None)) null
    else {
      val made = ByteBuffer.allocate(8 * (clocks.length + windows.size))
      clocks.foreach(made.putLong)
      windows.forEach(end => made.putLong(end))
      made.array
    }
}

private[engine] object Agenda {
  def read(bytes: Array[Byte], clocks: Int): Agenda = {
    val windows = new TreeSet[java.lang.Long]()
    if (bytes == null) new Agenda(Array.fill(clocks)(Windows.None), windows)
    else {
      val from = ByteBuffer.wrap(bytes)
      val times = Array.fill(clocks)(from.getLong)
      while (from.hasRemaining) windows.add(from.getLong)
      new Agenda(times, windows)
    }
  }
}
