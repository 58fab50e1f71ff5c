package penstock.kernel.engine

import java.util.ArrayDeque
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project, UnaryNode}
import org.apache.spark.sql.execution.{ColumnarToRowTransition, SparkPlan, SparkStrategy, UnaryExecNode}
import org.apache.spark.sql.execution.datasources.v2.{MicroBatchScanExec, StreamingDataSourceV2ScanRelation}
import org.apache.spark.sql.vectorized.ColumnarBatch
import penstock.kernel.source.TopicStream
import scala.jdk.CollectionConverters._

/** How rows of a source enter the graph.
  *
  * `deleted`, `place` and `stamp` are the positions of those columns in the source's row; -1 where it has none. An edge with a
  * gathering is folded before the shuffle. `ticks` are woken once in every batch; `timed` are told in all their slots when the watermark of the
  * source has moved, `stepped` also how. `wakes` are groups that get an empty envelope in every batch: see `Cascade`. Under its `name` tasks of later batches use
  * again what was made.
  */
case class Entry(
    edges: Seq[Edge], gatherings: Seq[Option[Gathering]], deleted: Int, place: Int, stamp: Int, ticks: Seq[Target], slots: Int, timed: Seq[Target] = Nil,
    stepped: Seq[Target] = Nil, wakes: Seq[Long] = Nil, name: String = "") {
  @transient lazy val sent: Sent[Entry] = Sent(this)
}

/** How far a watermark has come at the end of a batch, and by which steps: see `Watermarks`. */
case class Moved(watermark: Long, steps: Array[Byte])

/** Rows of a source become envelopes, in Catalyst's tree. Output: the envelope, and its group. */
case class Feed(entry: Entry, output: Seq[Attribute], child: LogicalPlan) extends UnaryNode {
  override def producedAttributes: AttributeSet = AttributeSet(output)
  override def references: AttributeSet = child.outputSet
  override protected def withNewChildInternal(newChild: LogicalPlan): Feed = copy(child = newChild)
}

object FeedStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case Feed(entry, output, Columns(columns, topic)) => TopicFeedExec(entry, output, columns, planLater(topic)) :: Nil
    case Feed(entry, output, rows) => RowFeedExec(entry, output, planLater(rows)) :: Nil
    case _ => Nil
  }

  /** Columns of a topic as they are: which of them, and the topic. */
  private object Columns {
    def unapply(plan: LogicalPlan): Option[(Seq[Attribute], LogicalPlan)] = plan match {
      case topic: StreamingDataSourceV2ScanRelation if topic.stream.isInstanceOf[TopicStream] => Some((topic.output, topic))
      case Project(items, child) if items.forall(_.isInstanceOf[Attribute]) => unapply(child).map { case (_, topic) => (items.map(_.toAttribute), topic) }
      case _ => None
    }
  }
}

/** Rows of a source become envelopes, at work. */
sealed trait FeedExec extends UnaryExecNode {
  def entry: Entry
  /** The rows of the source; each is read before the next one is asked for. */
  protected def rows: RDD[InternalRow]

  override def producedAttributes: AttributeSet = AttributeSet(output)
  override def references: AttributeSet = child.outputSet
  override protected def doExecute(): RDD[InternalRow] = {
    val watermark = if (entry.timed.isEmpty && entry.stepped.isEmpty) None else moved
    val found = if (entry.edges.isEmpty) sparkContext.emptyRDD[InternalRow] else rows
    // A topic that got nothing has no tasks; somebody must still wake those who wait.
    val wakes = entry.ticks.nonEmpty || entry.wakes.nonEmpty || watermark.nonEmpty
    val tasks = if (found.getNumPartitions == 0 && wakes) sparkContext.parallelize(Seq.empty[InternalRow], 1) else found
    tasks.mapPartitionsWithEvaluator(new Feeding(entry.sent, entry.name, watermark))
  }
  /** The watermark at the end of the batch, if the batch moves it. */
  private def moved: Option[Moved] = child.collectFirst {
    case MicroBatchScanExec(_, _, topic: TopicStream, start, end, _, _) => topic.moved(start, end)
  }.flatten
}

/** From rows, as Spark makes them. */
case class RowFeedExec(entry: Entry, output: Seq[Attribute], child: SparkPlan) extends FeedExec {
  override protected def rows: RDD[InternalRow] = child.execute()
  override protected def withNewChildInternal(newChild: SparkPlan): RowFeedExec = copy(child = newChild)
}

/** From the columns of a topic: what is read of a row is read where it lies, and nothing else of it. */
case class TopicFeedExec(entry: Entry, output: Seq[Attribute], columns: Seq[Attribute], child: SparkPlan) extends FeedExec with ColumnarToRowTransition {
  override protected def rows: RDD[InternalRow] = {
    val taken = columns.map(column => child.output.indexWhere(_.exprId == column.exprId)).toArray
    child.executeColumnar().mapPartitionsWithEvaluator(new Columned(taken))
  }
  override protected def withNewChildInternal(newChild: SparkPlan): TopicFeedExec = copy(child = newChild)
}

/** Envelopes of the rows of each task. Spark looks through the byte code of closures in every batch; it need not look through this. */
final class Feeding(sent: Sent[Entry], name: String, watermark: Option[Moved]) extends Work[InternalRow, InternalRow] {
  override def of(partition: Int, rows: Iterator[InternalRow]): Iterator[InternalRow] =
    new FeedIterator(Kept.of(name)(new EntryRoutes(sent.read())), rows, first = partition == 0, watermark)
}

/** The rows of batches of columns, of which these are taken. */
final class Columned(taken: Array[Int]) extends Work[ColumnarBatch, InternalRow] {
  override def of(partition: Int, batches: Iterator[ColumnarBatch]): Iterator[InternalRow] =
    batches.flatMap(batch => new ColumnarBatch(taken.map(batch.column), batch.numRows).rowIterator.asScala)
}

/** One task's share of a source.
  *
  * Folds what can be folded while rows come, and gives that out at the end, or whenever it has become large.
  */
final class FeedIterator(made: EntryRoutes, rows: Iterator[InternalRow], first: Boolean, watermark: Option[Moved] = None) extends Iterator[InternalRow] {
  private val entry = made.entry
  private val routes = made.routes
  private val fused = made.fused
  private val combiners = made.combined.map { case (to, gathering) => if (gathering == null) null else new Combiner(to, gathering) }
  private val ready = new ArrayDeque[Array[Byte]]()
  private val writer = new UnsafeRowWriter(2, 256)
  /** Those whose turn it is to give out what they have gathered. */
  private val emptying = new ArrayDeque[Combiner]()
  private var ended = false
  if (first) entry.ticks.foreach(to => ready.add(Envelope.stamped(Envelope.of(to, Envelope.Tick, FeedIterator.Nothing, FeedIterator.Nothing), 0, Long.MinValue, Long.MinValue)))
  if (first) entry.wakes.foreach(group => ready.add(Envelope.tick(Target(0, 0, (group >>> 32).toInt), group.toInt, Long.MinValue)))
  if (first) for (moved <- watermark; slot <- 0 until entry.slots) {
    entry.timed.foreach(to => ready.add(Envelope.tick(to, slot, moved.watermark)))
    entry.stepped.foreach(to => ready.add(Envelope.tick(to, slot, moved.watermark, moved.steps)))
  }

  override def hasNext: Boolean = {
    while (ready.isEmpty && !(ended && emptying.isEmpty)) {
      if (!emptying.isEmpty) take()
      else if (rows.hasNext) send(rows.next())
      else {
        combiners.foreach(c => if (c != null) emptying.add(c))
        ended = true
      }
    }
    !ready.isEmpty
  }

  private def take(): Unit = {
    val envelope = emptying.peek().take()
    if (envelope == null) emptying.poll() else ready.add(envelope)
  }

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException("no envelope left")
    val envelope = ready.poll()
    writer.reset()
    writer.zeroOutNullBytes()
    writer.write(0, envelope)
    writer.write(1, Envelope.group(envelope, entry.slots))
    writer.getRow
  }

  private def send(row: InternalRow): Unit = {
    val weight = if (entry.deleted >= 0 && row.getBoolean(entry.deleted)) -1L else 1L
    val place = if (entry.place < 0) Long.MinValue else row.getLong(entry.place)
    val stamp = if (entry.stamp < 0 || row.isNullAt(entry.stamp)) Long.MinValue else row.getLong(entry.stamp)
    var i = 0
    while (i < routes.length) {
      val route = routes(i)
      val combiner = combiners(i)
      if (fused(i) != null && combiner.pays) {
        fused(i).add(row, combiner, weight, stamp, place)
        empty(combiner)
      } else if (route.plain) { if (route.takes(row)) send(route, combiner, row, weight, stamp, place) }
      else route.each(row)(send(route, combiner, _, weight, stamp, place))
      i += 1
    }
  }

  private def send(route: Route, combiner: Combiner, row: InternalRow, weight: Long, stamp: Long, place: Long): Unit =
    if (route.drops) route.valueOf(row)
    else if (combiner == null || !combiner.pays) ready.add(route.envelope(row, weight, stamp, place))
    else {
      combiner.add(route.keyOf(row), route.valueOf(row), weight, stamp, place)
      empty(combiner)
    }

  /** Lets it give out what it has, if it is time. */
  private def empty(combiner: Combiner): Unit = if (combiner.isFull && !emptying.contains(combiner)) emptying.add(combiner)
}

/** The edges of a source, compiled. */
final class EntryRoutes(val entry: Entry) {
  val routes: Array[Route] = entry.edges.map(new Route(_)).toArray
  /** Null where there is none. */
  val fused: Array[Fused] = entry.edges.zip(entry.gatherings).map { case (edge, gathering) => gathering.flatMap(Fused.of(edge, _)).orNull }.toArray
  val combined: Array[(Target, Gathering)] = entry.edges.zip(entry.gatherings).map { case (edge, gathering) => (edge.to, gathering.orNull) }.toArray
}

object FeedIterator {
  val Nothing: UnsafeRow = UnsafeProjection.create(Seq.empty[org.apache.spark.sql.catalyst.expressions.Expression])(InternalRow.empty).copy()
}
