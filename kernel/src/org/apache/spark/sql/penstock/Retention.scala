package org.apache.spark.sql.penstock

import java.util.IdentityHashMap
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types.LongType
import penstock.kernel.source.Hidden

/** What a pipeline's relations are, for joins that are corrected for a limited time.
  *
  * @param times the event time of each stream that has one, by the stream's name
  * @param others the names of tables and of the other streams
  * @param versions for Spark's batch engine, the rows that each of the others has had: its columns, behind them from which place on it had them, and
  * of a table up to which, and the watermarks of streams that stood before each of the two
  */
final case class Retaining(times: Map[String, String], others: Set[String], versions: Option[Map[String, LogicalPlan]])

/** Joins of a stream with what has no time are corrected for a limited time.
  *
  * A row of the stream meets the other side as it stands at the row's own place in the log. A record of the other side that comes later counts for it
  * as long as the watermark that stood before the record is not beyond the row's time by more than `retain`. For the engine, the join is marked. For
  * Spark's batch engine, the other side is all versions of its rows, and the condition says which of them is the last that counts.
  *
  * @param retain so many microseconds, by stream
  */
final class Retention(known: Retaining, retain: Map[String, Long], bounds: TimeBounds) {
  private val kept = new IdentityHashMap[Retained, Side]()

  def apply(query: LogicalPlan): LogicalPlan = if (retain.isEmpty) query else within(Lateness.plain(query, known.times))

  /** The query's own joins, the lower ones first; what another view has it takes as it is. */
  private def within(plan: LogicalPlan): LogicalPlan = plan match {
    case view: View => view
    case _ =>
      plan.mapChildren(within).transformExpressionsUp { case query: PlanExpression[LogicalPlan @unchecked] => query.withNewPlan(within(query.plan)) } match {
        case join: Join => retained(join).getOrElse(join)
        case other => other
      }
  }

  /** A side of a join: its rows, with the columns of the record behind them that are asked for. `stream` is whose event time `time` is. */
  private case class Side(plan: LogicalPlan, hidden: Map[String, Attribute], stream: Option[String], time: Option[Attribute]) {
    def over(node: LogicalPlan => LogicalPlan): Side = copy(plan = node(plan))
    def more(output: Seq[NamedExpression]): Seq[Attribute] = (hidden.values.toSeq ++ time).filterNot(each => output.exists(_.exprId == each.exprId))
    def place: Attribute = hidden(Hidden.Place)
    def until: Option[Attribute] = hidden.get(Retention.Until)
    def stamp(of: String): Attribute = hidden(Hidden.watermarkOf(of))
    def untilStamp(of: String): Attribute = hidden(Retention.untilOf(of))
  }

  private def retained(join: Join): Option[LogicalPlan] = for {
    _ <- Option.when(isOnKeys(join) && bounds.of(join).isEmpty)(())
    left <- side(join.left)
    right <- side(join.right)
    sides = Seq(left, right)
    if left.stream.isEmpty || left.stream != right.stream
    dated = Seq(0, 1).filter(each => isShown(join, each) && sides(each).stream.exists(retain.contains) && !Retained.isIn(sides(1 - each).plan))
    if leads(join.joinType).exists(dated.contains)
  } yield {
    val overs = dated.map(each => over(sides(each)))
    val streams = dated.map(each => sides(each).stream.get)
    val condition = if (known.versions.isEmpty) None else Some(counts(left, right, dated.zip(overs).toMap))
    val made = join.copy(left = left.plan, right = right.plan, condition = (join.condition ++ condition).reduceOption(And(_, _)))
    val marked = Retained(dated, overs, streams, streams.map(retain), made)
    kept.put(marked, sides(leads(join.joinType).find(dated.contains).get).copy(plan = marked))
    Project(join.output, marked)
  }

  private def isOnKeys(join: Join): Boolean = join match {
    case ExtractEquiJoinKeys(_, _, _, _, _, _, _, _) => !join.condition.exists(_.exists(_.isInstanceOf[PlanExpression[_]]))
    case _ => false
  }

  /** The sides whose rows may be what is corrected: not those that stand in the answer without a partner, or not at all, unless all of them do. */
  private def leads(kind: JoinType): Seq[Int] = kind match {
    case _: InnerLike => Seq(0, 1)
    case LeftOuter | LeftSemi | LeftAnti | ExistenceJoin(_) => Seq(0)
    case RightOuter => Seq(1)
    case _ => Nil
  }
  private def isShown(join: Join, side: Int): Boolean = side == 0 || join.joinType.isInstanceOf[InnerLike] || join.joinType == LeftOuter || join.joinType == RightOuter

  private def side(plan: LogicalPlan): Option[Side] = plan match {
    case relation: DataSourceV2Relation => stream(relation)
    case view: View if known.others(view.desc.identifier.table) => other(view)
    case Project(items, child) => side(child).map(found => found.over(Project(items ++ found.more(items), _)))
    case Filter(condition, child) if !condition.exists(_.isInstanceOf[PlanExpression[_]]) => side(child).map(_.over(Filter(condition, _)))
    case generate: Generate => side(generate.child).map(_.over(child => generate.copy(unrequiredChildIndex = Nil, child = child)))
    case marked: Retained => Option(kept.get(marked))
    case _ => None
  }

  private def stream(relation: DataSourceV2Relation): Option[Side] = {
    val name = relation.options.get("relation")
    val time = known.times.get(name).flatMap(time => relation.output.find(_.name.equalsIgnoreCase(time)))
    if (time.isEmpty) None
    else if (known.versions.isEmpty) Some(Side(relation, Map.empty, time.map(_ => name), time))
    else {
      val whole = relation.withMetadataColumns()
      val hidden = whole.output.filter(column => column.name == Hidden.Place || column.name.startsWith(Hidden.Watermark))
      Some(Side(whole, hidden.map(column => column.name -> column).toMap, time.map(_ => name), time))
    }
  }

  private def other(view: View): Option[Side] = known.versions match {
    case None => Some(Side(view, Map.empty, None, None))
    case Some(versions) =>
      val rows = versions(view.desc.identifier.table)
      val (own, hidden) = rows.output.splitAt(view.output.size)
      val named = own.zip(view.output).map { case (mine, asked) => Alias(mine, asked.name)(asked.exprId, asked.qualifier) }
      val behind = hidden.map(column => Alias(column, column.name)())
      Some(Side(Project(named ++ behind, rows), behind.map(each => each.name -> each.toAttribute).toMap, None, None))
  }

  /** When rows of a stream are over, in microseconds. Those without a time never are. */
  private def over(side: Side): Expression =
    Coalesce(Seq(Add(TimeWindows.micros(side.time.get), Literal(retain(side.stream.get) + 1, LongType)), Literal(Long.MaxValue)))

  /** Whether two rows meet: each of them counts for the other, where that is a stream's. */
  private def counts(left: Side, right: Side, overs: Map[Int, Expression]): Expression = {
    def of(mine: Side, theirs: Side, over: Expression): Expression = {
      def counts(place: Attribute, stamp: Attribute): Expression =
        Or(LessThan(place, mine.place), Coalesce(Seq(LessThan(TimeWindows.micros(stamp), over), Literal(true))))
      val stream = mine.stream.get
      val first = counts(theirs.place, theirs.stamp(stream))
      theirs.until.fold(first)(until => And(first, Or(IsNull(until), Not(counts(until, theirs.untilStamp(stream))))))
    }
    overs.toSeq.sortBy(_._1).map { case (each, over) => if (each == 0) of(left, right, over) else of(right, left, over) }.reduce(And(_, _))
  }
}

object Retention {
  /** Of a version: the place of the record that ends it. */
  val Until = "_until"
  /** The watermark of a stream that stood before that record. */
  def untilOf(stream: String): String = s"$Until of $stream"
}
