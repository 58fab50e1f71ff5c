package penstock.kernel.engine

import java.util.{HashMap => JavaMap}
import org.apache.spark.sql.Encoders
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.statefulprocessor.StatefulProcessorHandleImpl
import org.apache.spark.sql.streaming._
import org.apache.spark.unsafe.Platform
import penstock.kernel.state.{Key, PageStore, Slot}
import scala.collection.mutable.ArrayBuffer

/** Operators that follow each other under the same key, in the order in which rows pass them. */
case class Chain(id: Int, operators: Seq[Operator])

/** One level of the graph: a stateful operator of Spark's that hands each envelope to its operator.
  *
  * In: the envelopes of one chain and slot. Those of chains on other levels pass through.
  * State: the map `pages`, under (chain, slot): the pages of each operator of the chain, its position in the chain before their addresses.
  * Out: envelopes for later levels.
  *
  * @param name of its own: tasks of later batches use again what was made under it
  */
class Level(chains: Map[Int, Sent[Chain]], pageLimit: Int, open: OpenWindows, name: String = "") extends StatefulProcessor[Long, Array[Byte], Array[Byte]] {
  @transient private var pages: StoredPages = _
  @transient private lazy val running = new JavaMap[Int, RunningChain]()

  /** The driver only asks which state there is. */
  override def init(mode: OutputMode, time: TimeMode): Unit = getHandle match {
    case handle: StatefulProcessorHandleImpl => pages = StoredPages.of(handle)
    case planning => planning.getMapState[Array[Byte], Array[Byte]](StoredPages.Name, Encoders.BINARY, Encoders.BINARY, TTLConfig.NONE)
  }

  override def handleInputRows(group: Long, rows: Iterator[Array[Byte]], timers: TimerValues): Iterator[Array[Byte]] = {
    val id = (group >>> 32).toInt
    chains.get(id) match {
      case None => rows
      case Some(chain) =>
        val mine = running.computeIfAbsent(id, _ => Kept.of(s"$name chain $id")(new RunningChain(chain.read(), pageLimit)))
        mine.run(rows, i => new SlotPages(pages, group, i), (operator, some) => open.add(OpenInSlot(operator, group, some)))
    }
  }
}

/** A chain at work on one slot after the other; in one task, then perhaps in another. */
final class RunningChain(chain: Chain, pageLimit: Int) {
  private val operators = chain.operators.toArray
  private val routes = operators.map(_.edges.map(new Route(_)).toArray)
  private val keys = operators.map(o => new UnsafeRow(o.keyWidth))
  private val orders = operators.map(_.orders)
  private val sums = operators.map(_.sums)
  private val windows: Array[Clocked] = operators.map {
    case slices: Slices => new SlicedWindows(slices, pageLimit)
    case each => each.timing.map(new Windows(each, _, pageLimit)).orNull
  }
  private val dates = operators.map {
    case dated: Dated => dated.dating.map(how => new Dates(dated, how.clocks, pageLimit)).orNull
    case _ => null
  }

  /** `open` is told which windows and sessions of an operator are open. */
  def run(rows: Iterator[Array[Byte]], pages: Int => PageStore, open: (Int, Open) => Unit): Iterator[Array[Byte]] = {
    val out = new ArrayBuffer[Array[Byte]]()
    val inboxes = operators.map(each => new Inbox(sliced = each.isInstanceOf[Slices]))
    while (rows.hasNext) deliver(rows.next(), 0, inboxes, out)
    var i = 0
    while (i < operators.length) {
      if (!inboxes(i).isEmpty) runOperator(i, inboxes, pages(i), open, out)
      i += 1
    }
    out.iterator
  }

  /** Into the inbox of a later operator of the chain, or out of the level. */
  private def deliver(envelope: Array[Byte], from: Int, inboxes: Array[Inbox], out: ArrayBuffer[Array[Byte]]): Unit = {
    val target = Envelope.operator(envelope)
    var i = from
    while (i < operators.length && operators(i).id != target) i += 1
    if (i == operators.length) out += envelope
    else if ((windows(i) != null || dates(i) != null) && Envelope.kind(envelope) == Envelope.Tick) inboxes(i).tick(envelope)
    else if (Envelope.kind(envelope) != Envelope.Tick || operators(i).ticks) inboxes(i).add(envelope)
  }

  private def runOperator(i: Int, inboxes: Array[Inbox], pages: PageStore, open: (Int, Open) => Unit, out: ArrayBuffer[Array[Byte]]): Unit = {
    val output = new Output(routes(i), envelope => deliver(envelope, i + 1, inboxes, out))
    if (windows(i) != null) windows(i).run(inboxes(i).rows, inboxes(i).clocks, pages, open(operators(i).id, _), output)
    else if (dates(i) != null) dates(i).run(inboxes(i).rows, inboxes(i).clocks, pages, output, inboxes(i).steps, open(operators(i).id, _))
    else runKeys(i, inboxes(i), pages, output)
  }

  private def runKeys(i: Int, inbox: Inbox, pages: PageStore, output: Output): Unit = {
    val slot = new Slot(pages, pageLimit, orders(i), sums(i))
    val entries = inbox.rows.entrySet.iterator
    while (entries.hasNext) {
      val entry = entries.next()
      val key = entry.getKey
      keys(i).pointTo(key.bytes, Platform.BYTE_ARRAY_OFFSET + key.offset, key.length)
      operators(i).run(keys(i), entry.getValue, slot.state(key), output)
    }
    slot.close()
  }
}

/** What an operator got in one batch: the rows of each key, and how far clocks have come.
  *
  * @param sliced whether the slot was chosen without all of the key: its hash is the same for many keys then
  */
private final class Inbox(sliced: Boolean) {
  val rows = new JavaMap[Key, Rows]()
  private var times: Array[Long] = Array.emptyLongArray
  private var told: Array[Array[Byte]] = Dates.NoSteps

  def isEmpty: Boolean = rows.isEmpty && times.isEmpty

  def add(envelope: Array[Byte]): Unit = {
    val length = Envelope.keyLength(envelope)
    val hash = if (sliced) Envelope.hashOf(envelope, Platform.BYTE_ARRAY_OFFSET + Envelope.Header, length) else Envelope.hash(envelope)
    val key = new Key(envelope, Envelope.Header, length, hash)
    var found = rows.get(key)
    if (found == null) {
      found = new Rows
      rows.put(key, found)
    }
    found.add(envelope)
  }

  /** The envelope's port says which clock it is. */
  def tick(envelope: Array[Byte]): Unit = {
    val clock = Envelope.port(envelope)
    if (clock >= times.length) times = times.padTo(clock + 1, Windows.None)
    times(clock) = math.max(times(clock), Envelope.stamp(envelope))
    if (Envelope.rowLength(envelope) > 0) {
      if (clock >= told.length) told = told.padTo(clock + 1, null)
      told(clock) = Envelope.row(envelope)
    }
  }

  /** How far each clock has come, as far as was told. */
  def clocks: Array[Long] = times
  /** How each clock came there, where that was told. */
  def steps: Array[Array[Byte]] = told
}
