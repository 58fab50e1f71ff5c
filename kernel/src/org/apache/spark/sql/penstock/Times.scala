package org.apache.spark.sql.penstock

import java.util.{List => JavaList, Map => JavaMap}
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{Dataset => ClassicDataset}
import scala.jdk.CollectionConverters._

/** Time in the queries of one pipeline, as the planner in Python asks for it.
  *
  * State: for views that have been planned, which of their columns tell when a row is complete.
  *
  * @param streams the event time of each stream that has one, by the stream's name
  * @param histories those of them that are histories of tables
  * @param others the names of tables, and of streams without an event time
  * @param versions for Spark's batch engine, the rows that tables have had: see `Retaining`
  */
final class Times(streams: Map[String, String], histories: Set[String], others: Set[String], versions: Option[Map[String, LogicalPlan]]) {
  private var views = Map.empty[String, ViewClocks]
  private def clocks = new Clocks(streams, views)

  /** From now on queries that read the view know what its rows' times are, and for how long they are corrected. */
  def learn(view: String, plan: LogicalPlan, allowed: Long, waits: Boolean): Unit = {
    val known = clocks
    val columns = plan.output.flatMap(column => known.of(plan, column).filter(_.closes).map(clock => column.name -> clock.copy(delay = clock.delay + allowed)))
    views += view -> ViewClocks(columns.toMap, (waits && allowed == 0) || known.stays(plan))
  }

  /** The query without rows that come too late; with `waits`, with rows that are shown once they are complete. `retain` says by stream how long its rows
    * are corrected.
    */
  def timely(frame: DataFrame, allowed: Long, waits: Boolean, retain: JavaMap[String, Number]): DataFrame =
    made(frame, retain)(query => if (waits) new Lateness(streams, clocks, allowed).finished(query, None) else new Lateness(streams, clocks, allowed).left(query))

  /** The same for Spark's batch engine; with how far each stream has come, only what is complete by then. */
  def complete(frame: DataFrame, allowed: Long, until: JavaMap[String, Number], retain: JavaMap[String, Number]): DataFrame =
    made(frame, retain)(new Lateness(streams, clocks, allowed).finished(_, Some(Times.numbers(until))))

  /** The rows that came too late, for each operator that leaves them out, and the records that came too late to correct what they would have. */
  def late(frame: DataFrame, allowed: Long, retain: JavaMap[String, Number]): JavaList[DataFrame] = {
    val dataset = frame.asInstanceOf[ClassicDataset[Row]]
    val query = dataset.queryExecution.analyzed
    val beyond = retention(retain).beyond(new Versions(streams, histories)(query))
    (new Lateness(streams, clocks, allowed).late(versioned(query, retain)) ++ beyond).map(plan => ClassicDataset.ofRows(dataset.sparkSession, plan): DataFrame).asJava
  }

  /** For Spark's batch engine: the rows of streams, by stream and place, that those records would have corrected. */
  def concerned(frame: DataFrame, retain: JavaMap[String, Number]): JavaList[DataFrame] = {
    val dataset = frame.asInstanceOf[ClassicDataset[Row]]
    retention(retain).concerned(new Versions(streams, histories)(dataset.queryExecution.analyzed)).map(plan => ClassicDataset.ofRows(dataset.sparkSession, plan): DataFrame).asJava
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

  private def made(frame: DataFrame, retain: JavaMap[String, Number])(change: LogicalPlan => LogicalPlan): DataFrame = {
    val dataset = frame.asInstanceOf[ClassicDataset[Row]]
    ClassicDataset.ofRows(dataset.sparkSession, change(versioned(dataset.queryExecution.analyzed, retain)))
  }

  /** The query with the conditions under which versions count in its as-of joins, and corrections in those that are corrected for a limited time. */
  private def versioned(query: LogicalPlan, retain: JavaMap[String, Number]): LogicalPlan =
    retention(retain)(new Versions(streams, histories)(query))
  private def retention(retain: JavaMap[String, Number]): Retention = new Retention(Retaining(streams, others, versions), Times.numbers(retain), clocks.bounds)
}

object Times {
  private def numbers(values: JavaMap[String, Number]): Map[String, Long] = values.asScala.map { case (name, value) => name -> value.longValue }.toMap
}
