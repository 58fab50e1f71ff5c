package penstock.kernel.engine

import java.util.{HashMap => JavaMap}
import org.apache.spark.sql.Encoders
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.statefulprocessor.StatefulProcessorHandleImpl
import org.apache.spark.sql.streaming._
import org.apache.spark.unsafe.hash.Murmur3_x86_32

/** A chain on its level; `fed`: other chains send rows to it, not only sources. */
case class Station(chain: Sent[Chain], level: Int, fed: Boolean)

/** All levels of the graph as one stateful operator of Spark's, where all its tasks run at the same time in one process.
  *
  * In: the envelopes of one chain and slot; last of all, in every task, one that wakes it. Those of chains on no level pass through.
  * State: as that of `Level`, of the chains of all levels.
  * Out: envelopes for no chain.
  *
  * A chain that only sources feed runs when Spark brings its rows. What it sends to other chains goes straight to their tasks, by a `Relay`. These run when the
  * task is woken, level by level: each when all tasks are done with the one before.
  *
  * @param tasks as many as Spark has partitions of state
  * @param name of its own: tasks of later batches use again what was made under it
  */
class Cascade(chains: Map[Int, Station], tasks: Int, slots: Int, pageLimit: Int, open: OpenWindows, folder: String, name: String)
    extends StatefulProcessor[Long, Array[Byte], Array[Byte]] {
  private val levels = chains.values.filter(_.fed).map(_.level).toSeq.distinct.sorted(Ordering.Int.reverse)
  @transient private var pages: StoredPages = _
  @transient private lazy val running = new JavaMap[Int, RunningChain]()
  @transient private lazy val relay = Relay.of(name, tasks, levels, folder)

  /** The driver only asks which state there is. */
  override def init(mode: OutputMode, time: TimeMode): Unit = getHandle match {
    case handle: StatefulProcessorHandleImpl => pages = StoredPages.of(handle)
    case planning => planning.getMapState[Array[Byte], Array[Byte]](StoredPages.Name, Encoders.BINARY, Encoders.BINARY, TTLConfig.NONE)
  }

  override def handleInputRows(group: Long, rows: Iterator[Array[Byte]], timers: TimerValues): Iterator[Array[Byte]] = {
    val (me, id) = (Cascade.task(group, tasks), (group >>> 32).toInt)
    if (Cascade.wakes(id)) rest(me)
    else chains.get(id) match {
      case None => rows
      case Some(station) if station.fed =>
        rows.foreach(relay.send(me, me, station.level, group, _))
        Iterator.empty
      case Some(station) => passed(me, ran(group, station, rows))
    }
  }

  /** What was sent to this task by chains, level by level. */
  private def rest(me: Int): Iterator[Array[Byte]] = levels.iterator.flatMap { level =>
    relay.meet()
    relay.groups(me, level).flatMap(group => passed(me, ran(group, chains((group >>> 32).toInt), relay.rows(me, level, group))))
  }

  private def ran(group: Long, station: Station, rows: Iterator[Array[Byte]]): Iterator[Array[Byte]] = {
    val id = (group >>> 32).toInt
    val mine = running.computeIfAbsent(id, _ => Kept.of(s"$name chain $id")(new RunningChain(station.chain.read(), pageLimit)))
    mine.run(rows, i => new SlotPages(pages, group, i), (operator, some) => open.add(OpenInSlot(operator, group, some)))
  }

  /** Those that are for no chain; the others are sent. */
  private def passed(me: Int, envelopes: Iterator[Array[Byte]]): Iterator[Array[Byte]] = envelopes.filter { envelope =>
    val to = chains.get(Envelope.chain(envelope))
    for (station <- to) {
      val group = Envelope.group(envelope, slots)
      relay.send(me, Cascade.task(group, tasks), station.level, group, envelope)
    }
    to.isEmpty
  }
}

object Cascade {
  /** Groups of chains with such numbers wake a task: they come after all others, for Spark brings groups in order. */
  private val First = Int.MaxValue - (1 << 20)
  private def wakes(chain: Int): Boolean = chain >= First

  /** The task that Spark brings a group to. */
  def task(group: Long, tasks: Int): Int = Math.floorMod(Murmur3_x86_32.hashLong(group, 42), tasks)

  /** A group for each task, with which it is woken. */
  def waking(tasks: Int, slots: Int): Seq[Long] = {
    val groups = Iterator.from(First).flatMap(chain => Iterator.range(0, slots).map(slot => (chain.toLong << 32) | slot))
    val found = new Array[Long](tasks)
    var missing = tasks
    while (missing > 0) {
      val group = groups.next()
      if (found(task(group, tasks)) == 0) {
        found(task(group, tasks)) = group
        missing -= 1
      }
    }
    found.toSeq
  }
}
