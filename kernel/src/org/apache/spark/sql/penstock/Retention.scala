package org.apache.spark.sql.penstock

import java.util.IdentityHashMap
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Complete, Min}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types.LongType
import penstock.kernel.source.Hidden
import scala.collection.mutable

/** What a pipeline's relations are, for joins that are corrected for a limited time.
  *
  * @param times the event time of each stream that has one, by the stream's name
  * @param others the names of tables and of the other streams
  * @param versions for Spark's batch engine, the rows that each of the others has had: its columns, behind them from which place on it had them, and
  * of a table up to which; and for both places the record there, and the watermarks of streams that stood before it
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
  private val missed = mutable.ArrayBuffer.empty[LogicalPlan]
  private val passed = mutable.ArrayBuffer.empty[LogicalPlan]

  def apply(query: LogicalPlan): LogicalPlan = if (retain.isEmpty) query else within(query)

  /** The records that come too late to correct anything, for each join: see `Beyond`. */
  def beyond(query: LogicalPlan): Seq[LogicalPlan] = {
    apply(query)
    missed.toSeq.distinctBy(_.canonicalized)
  }

  /** For Spark's batch engine: the rows of streams, by stream and place, that those records would have corrected. */
  def concerned(query: LogicalPlan): Seq[LogicalPlan] = {
    apply(query)
    passed.toSeq
  }

  /** The query's own joins, the lower ones first; what another view has it takes as it is. */
  private def within(plan: LogicalPlan): LogicalPlan = plan match {
    case view: View => view
    case _ =>
      plan.mapChildren(within).transformExpressionsUp { case query: PlanExpression[LogicalPlan @unchecked] => query.withNewPlan(within(query.plan)) } match {
        case join: Join => retained(join).getOrElse(join)
        case other => other
      }
  }

  /** A side of a join: its rows, with what is known of the record behind them.
    *
    * @param time the event time of a stream
    * @param alone the stream's rows without what they are joined with below, and the columns that come from there
    */
  private case class Side(plan: LogicalPlan, relation: String, hidden: Map[String, Attribute], time: Option[Attribute], alone: LogicalPlan) {
    def more(output: Seq[NamedExpression]): Seq[Attribute] = (hidden.values.toSeq ++ time).filterNot(each => output.exists(_.exprId == each.exprId))
    def place: Attribute = hidden(Hidden.Place)
    def until: Option[Attribute] = hidden.get(Retention.Until)
    def stamp(of: String): Attribute = hidden(Hidden.watermarkOf(of))
    def untilStamp(of: String): Attribute = hidden(Retention.untilOf(of))
    def isAlone(e: Expression): Boolean = e.references.subsetOf(alone.outputSet)
  }

  private def retained(join: Join): Option[LogicalPlan] = for {
    (lefts, rights) <- keys(join) if bounds.of(join).isEmpty
    left <- side(join.left)
    right <- side(join.right)
    sides = Seq(left, right)
    if left.relation != right.relation
    dated = Seq(0, 1).filter(each => isShown(join, each) && isDated(sides(each), if (each == 0) lefts else rights) && !Retained.isIn(sides(1 - each).plan))
    if leads(join.joinType).exists(dated.contains)
  } yield {
    val overs = dated.map(each => over(sides(each)))
    val streams = dated.map(each => sides(each).relation)
    val condition = if (known.versions.isEmpty) None else Some(counts(left, right, dated.zip(overs).toMap))
    val made = join.copy(left = left.plan, right = right.plan, condition = (join.condition ++ condition).reduceOption(And(_, _)))
    val marked = Retained(dated, overs, streams, streams.map(retain), made)
    kept.put(marked, sides(leads(join.joinType).find(dated.contains).get).copy(plan = marked))
    dated.foreach(each => missed += (if (each == 0) letters(left, lefts, right, rights) else letters(right, rights, left, lefts)))
    Project(join.output, marked)
  }

  private def keys(join: Join): Option[(Seq[Expression], Seq[Expression])] = join match {
    case ExtractEquiJoinKeys(_, lefts, rights, _, _, _, _, _) if !join.condition.exists(_.exists(_.isInstanceOf[PlanExpression[_]])) => Some((lefts, rights))
    case _ => None
  }

  /** Whether rows of a side are over some day, and are known by what they had from the beginning. */
  private def isDated(side: Side, keys: Seq[Expression]): Boolean = side.time.isDefined && retain.contains(side.relation) && keys.forall(side.isAlone)

  /** The sides whose rows may be what is corrected: not those that stand in the answer without a partner, or not at all, unless all of them do. */
  private def leads(kind: JoinType): Seq[Int] = kind match {
    case _: InnerLike => Seq(0, 1)
    case LeftOuter | LeftSemi | LeftAnti | ExistenceJoin(_) => Seq(0)
    case RightOuter => Seq(1)
    case _ => Nil
  }
  private def isShown(join: Join, side: Int): Boolean = side == 0 || join.joinType.isInstanceOf[InnerLike] || join.joinType == LeftOuter || join.joinType == RightOuter

  private def side(plan: LogicalPlan): Option[Side] = plan match {
    case relation: DataSourceV2Relation => found(relation)
    case view: View if known.others(view.desc.identifier.table) => known.versions.fold(side(view.child))(versions => Some(other(view, versions(view.desc.identifier.table))))
    case Project(items, child) => side(child).map { found =>
      val mine = items.filter(found.isAlone)
      found.copy(plan = Project(items ++ found.more(items), found.plan), alone = Project(mine ++ found.more(mine), found.alone))
    }
    case Filter(condition, child) if !condition.exists(_.isInstanceOf[PlanExpression[_]]) => side(child).map { found =>
      found.copy(plan = Filter(condition, found.plan), alone = if (found.isAlone(condition)) Filter(condition, found.alone) else found.alone)
    }
    case generate: Generate => side(generate.child).map { found =>
      def over(child: LogicalPlan): LogicalPlan = generate.copy(unrequiredChildIndex = Nil, child = child)
      found.copy(plan = over(found.plan), alone = if (found.isAlone(generate.generator)) over(found.alone) else found.alone)
    }
    case marked: Retained => Option(kept.get(marked))
    case _ => None
  }

  private def found(relation: DataSourceV2Relation): Option[Side] = {
    val name = relation.options.get("relation")
    val whole = relation.withMetadataColumns()
    val (behind, own) = whole.output.partition(column => Hidden.isHidden(column.name))
    val hidden = behind.filter(column => Retention.isCarried(column.name)).map(column => column.name -> column).toMap
    val time = known.times.get(name).flatMap(time => own.find(_.name.equalsIgnoreCase(time)))
    if (time.isEmpty && !known.others(name)) None
    else if (hidden.contains(Hidden.Makers.head)) Some(Side(whole, name, hidden, None, whole))
    else {
      val row = Alias(Leaving.json(own), Hidden.Makers.last)()
      val made = Project(whole.output :+ row, whole)
      Some(Side(made, name, hidden + (row.name -> row.toAttribute), time, made))
    }
  }

  private def other(view: View, rows: LogicalPlan): Side = {
    val (own, hidden) = rows.output.splitAt(view.output.size)
    val named = own.zip(view.output).map { case (mine, asked) => Alias(mine, asked.name)(asked.exprId, asked.qualifier) }
    val behind = hidden.map(column => Alias(column, column.name)())
    val made = Project(named ++ behind, rows)
    Side(made, view.desc.identifier.table, behind.map(each => each.name -> each.toAttribute).toMap, None, made)
  }

  /** When rows of a stream are over, in microseconds. Those without a time never are. */
  private def over(side: Side): Expression =
    Coalesce(Seq(Add(TimeWindows.micros(side.time.get), Literal(retain(side.relation) + 1, LongType)), Literal(Long.MaxValue)))

  /** Whether two rows meet: each of them counts for the other, where that is a stream's. */
  private def counts(left: Side, right: Side, overs: Map[Int, Expression]): Expression = {
    def of(mine: Side, theirs: Side, over: Expression): Expression = {
      def counts(place: Attribute, stamp: Attribute): Expression =
        Or(LessThan(place, mine.place), Coalesce(Seq(LessThan(TimeWindows.micros(stamp), over), Literal(true))))
      val first = counts(theirs.place, theirs.stamp(mine.relation))
      theirs.until.fold(first)(until => And(first, Or(IsNull(until), Not(counts(until, theirs.untilStamp(mine.relation))))))
    }
    overs.toSeq.sortBy(_._1).map { case (each, over) => if (each == 0) of(left, right, over) else of(right, left, over) }.reduce(And(_, _))
  }

  /** What is kept of the records of `theirs` that come when rows of `mine` with their key are over. */
  private def letters(mine: Side, keys: Seq[Expression], theirs: Side, others: Seq[Expression]): LogicalPlan =
    if (known.versions.isDefined) looked(mine, keys, theirs, others)
    else {
      val record = Retention.record.map(_.flatMap(theirs.hidden.get)).find(_.length == 2).get :+ theirs.hidden(Hidden.Makers.last)
      val found = Beyond.columns
      LateRows.beyond(theirs.relation, found, Beyond(mine.relation, over(mine), keys, others, record, found, mine.alone, theirs.plan))
    }

  /** The same for Spark's batch engine: every version is made by a record, and ended by another. */
  private def looked(mine: Side, keys: Seq[Expression], theirs: Side, others: Seq[Expression]): LogicalPlan = {
    val begun = Seq(theirs.place, TimeWindows.micros(theirs.stamp(mine.relation))) ++ Retention.record.map(_.flatMap(theirs.hidden.get)).find(_.length == 2).get :+
      theirs.hidden(Hidden.Makers.last)
    val ended = theirs.until.toSeq.map(until => Seq(until, TimeWindows.micros(theirs.untilStamp(mine.relation))) ++ Retention.Ends.map(theirs.hidden))
    val made = (others ++ begun).zipWithIndex.map { case (e, i) => AttributeReference(s"_$i", e.dataType)() }
    val events = Expand((begun +: ended).map(others ++ _), made, theirs.plan)
    val (same, Seq(place, watermark, partition, offset, row)) = made.splitAt(others.length): @unchecked
    val late = And(LessThan(mine.place, place), LessThanOrEqual(over(mine), watermark))
    val pairs = Join(mine.alone, events, Inner, Some(keys.zip(same).map { case (a, b) => EqualTo(a, b): Expression }.foldLeft(late: Expression)(And(_, _))), JoinHint.NONE)
    passed += Project(Seq(Alias(Literal(mine.relation), "stream")(), Alias(mine.place, "place")()), pairs)
    val first = Alias(AggregateExpression(Min(over(mine)), Complete, isDistinct = false), "over")()
    LateRows.beyond(theirs.relation, Seq(partition, offset, row, watermark, first.toAttribute), Aggregate(made, made :+ first, pairs))
  }
}

object Retention {
  /** Of a version: the place of the record that ends it. */
  val Until = "_until"
  /** The watermark of a stream that stood before that record. */
  def untilOf(stream: String): String = s"$Until of $stream"
  /** That record. */
  val Ends: Seq[String] = Seq("_until_partition", "_until_offset", "_until_row")

  /** Where the partition and offset of the record behind a row stand: of a table's row, of a stream's. */
  private val record = Seq(Hidden.Makers.take(2), Seq(Hidden.Partition, Hidden.Offset))
  private def isCarried(column: String): Boolean =
    column == Hidden.Place || column.startsWith(Hidden.Watermark) || Hidden.Makers.contains(column) || column == Hidden.Partition || column == Hidden.Offset
}
