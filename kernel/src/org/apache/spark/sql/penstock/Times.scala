package org.apache.spark.sql.penstock

import java.util.{List => JavaList, Map => JavaMap}
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{Dataset => ClassicDataset}
import scala.jdk.CollectionConverters._

/** Time in the queries of one pipeline, as the planner in Python asks for it.
  *
  * State: for views that have been planned, which of their columns tell when a row is complete, and which only select rows of a stream.
  *
  * @param streams the event time of each stream that has one, by the stream's name
  * @param histories those of them that are histories of tables
  * @param unmarked histories that have no watermark
  * @param others the names of tables, and of streams without an event time
  * @param versions for Spark's batch engine, the rows that tables have had: see `Retaining`
  */
final class Times(
    streams: Map[String, String], histories: Set[String], unmarked: Set[String], others: Set[String], versions: Option[Map[String, LogicalPlan]]) {
  private var views = Map.empty[String, ViewClocks]
  private var open = Set.empty[String]
  private def clocks = new Clocks(streams, views)

  /** From now on queries that read the view know what its rows' times are, and for how long they are corrected. */
  def learn(view: String, plan: LogicalPlan, allowed: Long, waits: Boolean): Unit = {
    val known = clocks
    val columns = plan.output.flatMap(column => known.of(plan, column).filter(_.closes).map(clock => column.name -> clock.copy(delay = clock.delay + allowed)))
    views += view -> ViewClocks(columns.toMap, (waits && allowed == 0) || known.stays(plan))
  }

  /** Whether a view only selects rows of a stream: queries that read it are from now on taken as reading the stream. */
  def opened(view: String, plan: LogicalPlan): Boolean = {
    if (Lateness.selects(plan, streams)) open += view
    open(view)
  }

  /** The query without rows that come too late; with `waits`, with rows that are shown once they are complete. `retain` says by stream how long its rows
    * are corrected.
    */
  def timely(frame: DataFrame, allowed: Long, waits: Boolean, retain: JavaMap[String, Number]): DataFrame = made(frame, waits, retain) { query =>
    if (waits) new Lateness(streams, clocks, allowed).finished(query, None) else new Lateness(streams, clocks, allowed).left(query)
  }

  /** The same for Spark's batch engine; with how far each stream has come, only what is complete by then. */
  def complete(frame: DataFrame, allowed: Long, until: JavaMap[String, Number], retain: JavaMap[String, Number]): DataFrame =
    made(frame, waits = true, retain)(new Lateness(streams, clocks, allowed).finished(_, Some(Times.numbers(until))))

  /** The rows that came too late, for each operator that leaves them out, and the records that came too late to correct what they would have. */
  def late(frame: DataFrame, allowed: Long, waits: Boolean, retain: JavaMap[String, Number]): JavaList[DataFrame] = {
    val query = versioned(frame, waits)
    all(frame, new Lateness(streams, clocks, allowed).late(retention(retain)(query)) ++ retention(retain).beyond(query))
  }

  /** For Spark's batch engine: the rows of streams, by stream and place, that those records would have corrected. */
  def concerned(frame: DataFrame, waits: Boolean, retain: JavaMap[String, Number]): JavaList[DataFrame] =
    all(frame, retention(retain).concerned(versioned(frame, waits)))

  private def all(frame: DataFrame, plans: Seq[LogicalPlan]): JavaList[DataFrame] = {
    val session = frame.asInstanceOf[ClassicDataset[Row]].sparkSession
    plans.map(plan => ClassicDataset.ofRows(session, plan): DataFrame).asJava
  }

  /** How the state of an operator is freed; null where nothing tells. */
  def closing(node: LogicalPlan, allowed: Long, waits: Boolean): Closing = closing(clocks, node, allowed, waits)

  private def closing(clocks: Clocks, node: LogicalPlan, allowed: Long, waits: Boolean): Closing = node match {
    case held: Held => new Closing(held, Seq(TimeBound(0, held.over, Clock(held.streams.toSet, Shape.End, 0, complete = true, timely = true), keyed = true)), allowed, waits)
    case _ =>
      val bounds = clocks.bounds.of(node)
      if (bounds.isEmpty || !bounds.forall(_.clock.closes)) null else new Closing(node, bounds, allowed, waits)
  }

  def hasClock(plan: LogicalPlan): Boolean = {
    val known = clocks
    plan.exists(node => closing(known, node, 0, waits = false) != null)
  }
  def isComplete(plan: LogicalPlan): Boolean = clocks.isComplete(plan)

  /** The query with its own operators changed; where corrections are for a limited time, with the conditions under which they count. */
  private def made(frame: DataFrame, waits: Boolean, retain: JavaMap[String, Number])(change: LogicalPlan => LogicalPlan): DataFrame =
    ClassicDataset.ofRows(frame.asInstanceOf[ClassicDataset[Row]].sparkSession, change(retention(retain)(versioned(frame, waits))))

  /** The query without what is only a name, with the conditions under which versions count in its as-of joins. */
  private def versioned(frame: DataFrame, waits: Boolean): LogicalPlan = {
    val query = Lateness.plain(frame.asInstanceOf[ClassicDataset[Row]].queryExecution.analyzed, streams, open)
    new Versions(streams, histories, if (waits) unmarked else Set.empty)(query)
  }

  private def retention(retain: JavaMap[String, Number]): Retention = new Retention(Retaining(streams, others, versions), Times.numbers(retain), clocks.bounds)
}

object Times {
  private def numbers(values: JavaMap[String, Number]): Map[String, Long] = values.asScala.map { case (name, value) => name -> value.longValue }.toMap
}
