package penstock.kernel.engine

import java.util.Comparator
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import penstock.kernel.state.{Slot, State, Sum}

/** One operator of the graph: keeps its answer for each key under changes.
  *
  * In: the envelopes of one key in one batch, in no promised order.
  * State: what `State` holds for the key; `orders` gives the order of each of its collections, `sums` sums up each of its piles.
  * Out: changes of its answer, consolidated as far as the key goes.
  */
abstract class Operator extends Serializable {
  def id: Int
  /** How many columns the key has. */
  def keyWidth: Int
  def edges: Seq[Edge]
  def orders: Array[Comparator[Array[Byte]]] = Operator.NoOrders
  def sums: Array[Sum] = Slot.NoSums
  def run(key: UnsafeRow, rows: Rows, state: State, out: Output): Unit
  /** How windows in its keys close; None where there are none. */
  def timing: Option[Timing] = None
  /** Woken in every batch, also where nothing came: an aggregate without groups has an answer from the start. */
  def ticks: Boolean = false
}

/** When the windows of an operator close.
  *
  * @param window where the window stands in the key
  * @param struct whether it is a struct of its start and its end; else it is a time
  * @param more so many microseconds after that end, or that time, it is over
  * @param clocks how many streams are beneath; the watermark is the least of theirs
  * @param allowed so many microseconds a window is still kept, for rows that correct it, after the watermark has passed its end
  * @param waits whether a window is shown only once it is complete
  */
case class Timing(window: Int, struct: Boolean, more: Long, clocks: Int, allowed: Long, waits: Boolean)

/** An operator that can wait until a window is complete. */
trait Patient extends Operator {
  /** Takes in the rows of a key, and gives out nothing. */
  def gather(key: UnsafeRow, rows: Rows, state: State): Unit
  /** Gives out what there is for a key. */
  def show(key: UnsafeRow, state: State, out: Output): Unit
}

/** How keys get deadlines of their own.
  *
  * @param clocks how many streams are beneath; the watermark is the least of theirs
  * @param delay so many microseconds rows may still come after their time
  * @param allowed so many microseconds what is over is still kept, for rows that correct it
  * @param waits whether answers are shown only once they are complete
  */
case class Dating(clocks: Int, delay: Long, allowed: Long, waits: Boolean)

/** An operator that looks at a key again when the watermark comes to a time that the key's state tells. */
trait Dated extends Operator {
  def dating: Option[Dating]
  /** Whether it tells how many sessions it has open. */
  def hasSessions: Boolean = false
  /** How far clocks had come before each record of the batch, before any rows of a slot come. */
  def hear(told: Watermarks): Unit = ()
  /** The rows of a key, none where only its deadline has come.
    *
    * The watermark was `before` when the batch began and is `now` at its end. Tells `deadline` of the key's state as it was and as it is;
    * afterwards that is later than `now`.
    */
  def run(key: UnsafeRow, rows: Rows, state: State, before: Long, now: Long, deadline: Deadline, out: Output): Unit
}

/** When the key at hand is looked at again; `Deadline.Never` where nothing is kept for it, or no time frees that. */
abstract class Deadline {
  def move(from: Long, to: Long): Unit
  /** So many more sessions of the key are open. */
  def opened(more: Int): Unit = ()
}

object Deadline {
  val Never: Long = Long.MaxValue
  /** Nobody asks. */
  val Ignored: Deadline = (_: Long, _: Long) => ()
}

object Operator {
  val NoOrders: Array[Comparator[Array[Byte]]] = Array.empty
  val Bytes: Comparator[Array[Byte]] = (a: Array[Byte], b: Array[Byte]) => java.util.Arrays.compareUnsigned(a, b)
}

/** The envelopes of one key in one batch. */
final class Rows {
  private var items = new Array[Array[Byte]](4)
  private var count = 0

  def add(envelope: Array[Byte]): Unit = {
    if (count == items.length) items = java.util.Arrays.copyOf(items, count * 2)
    items(count) = envelope
    count += 1
  }
  def size: Int = count
  def apply(i: Int): Array[Byte] = items(i)
  /** Puts them into the order of place, then bytes. */
  def sortByPlace(): Unit = java.util.Arrays.sort(items, 0, count, Envelope.ByPlace)
  /** Puts them into the order of place; of those at one place, first those of the port `first`, and of one port rows that come before rows that go:
    * what is replaced is never missing in between.
    */
  def sortByStep(first: Int): Unit = java.util.Arrays.sort(items, 0, count, new Rows.ByStep(first))
  /** Makes one envelope of those that carry the same row to the same port: their weights add up, the last place counts, and at one place the
    * smaller stamp. */
  def consolidate(): Unit = if (count > 1) {
    java.util.Arrays.sort(items, 0, count, Rows.ByRow)
    var kept = 0
    var i = 0
    while (i < count) {
      var merged = items(i)
      i += 1
      while (i < count && Rows.ByRow.compare(merged, items(i)) == 0) {
        merged = Rows.added(merged, items(i))
        i += 1
      }
      if (Envelope.weight(merged) != 0) {
        items(kept) = merged
        kept += 1
      }
    }
    count = kept
  }
  def lastPlace: Long = extreme(Envelope.place)
  def lastStamp: Long = extreme(Envelope.stamp)
  private def extreme(of: Array[Byte] => Long): Long = {
    var found = Long.MinValue
    var i = 0
    while (i < count) {
      found = math.max(found, of(items(i)))
      i += 1
    }
    found
  }
}

object Rows {
  /** By port, then by the row's bytes. The envelopes are of one key. */
  object ByRow extends Comparator[Array[Byte]] {
    override def compare(a: Array[Byte], b: Array[Byte]): Int = {
      val byPort = Integer.compare(Envelope.port(a), Envelope.port(b))
      if (byPort != 0) byPort
      else java.util.Arrays.compareUnsigned(a, Envelope.rowStart(a), a.length, b, Envelope.rowStart(b), b.length)
    }
  }

  private final class ByStep(first: Int) extends Comparator[Array[Byte]] {
    override def compare(a: Array[Byte], b: Array[Byte]): Int = {
      val byPlace = java.lang.Long.compare(Envelope.place(a), Envelope.place(b))
      val byPort = if (byPlace != 0) byPlace else java.lang.Boolean.compare(Envelope.port(b) == first, Envelope.port(a) == first)
      val byWeight = if (byPort != 0) byPort else java.lang.Long.compare(Envelope.weight(b), Envelope.weight(a))
      if (byWeight != 0) byWeight else ByRow.compare(a, b)
    }
  }

  private def added(a: Array[Byte], b: Array[Byte]): Array[Byte] = {
    val order = java.lang.Long.compare(Envelope.place(a), Envelope.place(b))
    val later = if (order > 0 || (order == 0 && Envelope.stamp(a) <= Envelope.stamp(b))) a else b
    Envelope.stamped(a, Envelope.weight(a) + Envelope.weight(b), Envelope.stamp(later), Envelope.place(later))
  }
}
