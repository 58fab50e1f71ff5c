package penstock.kernel.engine

import java.util.{ArrayList, HashMap => JavaHashMap, Map => JavaMap, TreeMap, TreeSet}
import org.apache.spark.unsafe.Platform
import penstock.kernel.state.{Key, PageStore, Slot, WindowPages}
import scala.collection.mutable.ArrayBuffer

/** Windows made of slices, at work on one slot.
  *
  * State: the agenda, which has the ends under which slices are kept; for each of them a slot of pages of its own. It goes when the last window that its
  * slices may be in is over.
  */
final class SlicedWindows(operator: Slices, pageLimit: Int) extends Clocked {
  private val slide = operator.slide
  private val length = operator.length
  private val gathering = operator.aggregate.gathering

  override def run(inbox: JavaMap[Key, Rows], ticks: Array[Long], pages: PageStore, open: Spans => Unit, out: Output): Unit = {
    val stored = pages.header
    val agenda = Agenda.read(stored, operator.clocks)
    val before = agenda.watermark
    agenda.advance(ticks)
    val now = agenda.watermark
    val batch = new Batch(pages)
    inbox.forEach { (key, rows) =>
      val first = Slices.first(key.bytes, key.offset)
      operator.run(null, rows, batch.slot(first).state(key), out)
      agenda.windows.add(first)
    }
    if (now > before) ends(agenda.windows, before, now).forEach(end => show(end, agenda, batch, out))
    batch.close(agenda, now)
    open(Spans(slide, after(agenda.windows, now)))
    val bytes = agenda.bytes
    if (!java.util.Arrays.equals(bytes, stored)) pages.header = bytes
  }

  /** The ends of the windows that have slices, after `now`: the first and the last of those that follow each other. */
  private def after(firsts: TreeSet[java.lang.Long], now: Long): Array[Long] = {
    val found = ArrayBuffer.empty[Long]
    firsts.forEach { first =>
      val from = next(first, now)
      val until = first + (length - slide) / slide * slide
      if (found.nonEmpty && from <= found.last + slide) found(found.size - 1) = math.max(found.last, until)
      else if (from <= until) found ++= Seq(from, until)
    }
    found.toArray
  }

  /** The first end from `first` on that is after `now`. */
  private def next(first: Long, now: Long): Long = if (first > now) first else first + ((now - first) / slide + 1) * slide

  /** The ends of the windows that have slices, after `before` and until `now`. */
  private def ends(firsts: TreeSet[java.lang.Long], before: Long, now: Long): TreeSet[java.lang.Long] = {
    val found = new TreeSet[java.lang.Long]()
    firsts.forEach { first =>
      var end = next(first, before)
      while (end <= now && end <= last(first)) {
        found.add(end)
        end += slide
      }
    }
    found
  }

  /** The end of the last window that slices kept under `first` may be in. */
  private def last(first: Long): Long = first + length - slide

  private def show(end: Long, agenda: Agenda, batch: Batch, out: Output): Unit = {
    val groups = new JavaHashMap[Key, Gathered]()
    agenda.windows.subSet(end - length, false, end, true).forEach { first =>
      batch.slices(first).forEach { slice =>
        if (slice.start >= end - length) gathering.merge(groups.computeIfAbsent(slice.group, _ => gathering.fresh()), slice.gathered)
      }
    }
    groups.forEach((group, gathered) => operator.show(group.toBytes, end, gathered, out))
  }

  /** One slice of one group. */
  private final class Slice(val group: Key, val start: Long, val gathered: Gathered)

  /** What was opened of a slot's pages. */
  private final class Batch(pages: PageStore) {
    private val slots = new TreeMap[java.lang.Long, Slot]()
    private val read = new JavaHashMap[java.lang.Long, ArrayList[Slice]]()

    def slot(first: Long): Slot = slots.computeIfAbsent(first, _ => new Slot(new WindowPages(pages, first), pageLimit, operator.orders, operator.sums))

    /** The slices that are kept under `first`, after all rows of the batch. */
    def slices(first: Long): ArrayList[Slice] = read.computeIfAbsent(first, _ => {
      val found = new ArrayList[Slice]()
      slot(first).foreach { (key, state) =>
        val group = key.toBytes
        Slices.put(group, 0, 0)
        val hash = Envelope.hashOf(group, Platform.BYTE_ARRAY_OFFSET, group.length)
        val bytes = state.value
        found.add(new Slice(new Key(group, 0, group.length, hash), Slices.start(key.bytes, key.offset), gathering.read(bytes, 0, bytes.length)))
      }
      found
    })

    /** Keeps what later windows need. */
    def close(agenda: Agenda, now: Long): Unit = {
      new ArrayList(agenda.windows.headSet(now, true)).forEach { first =>
        if (last(first) <= now) {
          slot(first).drop()
          slots.remove(first)
          agenda.windows.remove(first)
        }
      }
      slots.forEach((_, slot) => slot.close())
    }
  }
}
