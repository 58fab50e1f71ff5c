package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.{Inner, LeftOuter}
import org.apache.spark.sql.catalyst.plans.logical.{AsOfJoin, Join => LogicalJoin, JoinHint, LogicalPlan}
import org.apache.spark.sql.types.NullType
import penstock.kernel.engine.{Ages, AsOf, Edge, Nearest, Operator, RowOrder}
import penstock.kernel.source.Hidden

/** An as-of join taken apart: its kind, the keys and times of both sides, and what must hold of each side and of both. */
final class AsOfPlan(node: AsOfJoin) {
  val kind: String = if (node.joinType == LeftOuter) "left" else "inner"
  for (query <- node.expressions.flatMap(_.collect { case query: PlanExpression[_] => query }).headOption)
    throw new Unsupported(s"${query.prettyName.toUpperCase} in the condition of an ASOF JOIN", "it belongs into a query over one of the two relations")
  private val times = AsOfTimes.of(node).getOrElse(throw new Unsupported("an as-of join in both directions", "the nearest row is looked for before a time, or after it"))
  private val (left, right, rest) = LogicalJoin(node.left, node.right, Inner, node.condition, JoinHint.NONE) match {
    case ExtractEquiJoinKeys(_, l, r, others, _, _, _, _) => (l, r, others)
    case _ => (Nil, Nil, node.condition)
  }
  val leftKeys: Seq[Expression] = left.map(AggregatePlan.keyed(_, "ASOF JOIN ON"))
  val rightKeys: Seq[Expression] = right.map(AggregatePlan.keyed(_, "ASOF JOIN ON"))
  private val (ofLeft, others) = rest.toSeq.flatMap(JoinPlan.conjuncts).partition(_.references.subsetOf(node.left.outputSet))
  private val (ofRight, ofBoth) = others.partition(_.references.subsetOf(node.right.outputSet))
  /** What must hold of the rows of a side, whatever they meet. */
  def conditions(side: Int): Seq[Expression] = if (side == 0) ofLeft else ofRight
  /** What must hold of both, for people: the times, how far apart they may be, and the rest. */
  val pairing: Seq[Expression] = times.comparison +: (times.within ++ ofBoth)

  /** What a side must send besides its columns: its time. */
  private val ordering: Seq[Seq[NamedExpression]] = Seq(times.left, times.right).map(time => Seq(Alias(time, "ordering")()))
  def extra(side: Int): Seq[Expression] = ordering(side).map(AggregatePlan.plain)
  def extraColumns(side: Int): Seq[Attribute] = ordering(side).map(_.toAttribute)

  private val stamps = ofBoth.flatMap(Versions.stampIn)
  /** What frees the left rows; null where nothing does. */
  def closing: AsOfClosing = AsOfClosing.of(node).orNull

  /** `left` and `right` are the columns that the sides send, the time last. */
  def operator(id: Int, left: Seq[Attribute], right: Seq[Attribute], edges: Seq[Edge], closing: Option[AsOfClosing]): Operator = {
    def bind(e: Expression, row: Seq[Attribute]): Expression = BindReferences.bindReference(e, AttributeSeq(row))
    def order(row: Seq[Attribute], ties: Seq[Expression]): RowOrder = RowOrder(row.length, (row.last +: ties).map(e => SortOrder(bind(e, row), Ascending)), ranked = 1)
    def all(conditions: Seq[Expression], row: Seq[Attribute]): Option[Expression] = conditions.reduceOption(And(_, _)).map(bind(_, row))
    val nearest = Nearest(times.forward, times.exact, all(ofBoth, left ++ right), certain.map(bind(_, right)), all(times.within, left ++ right))
    AsOf(id, leftKeys.length, kind == "left", (order(left, Nil), order(right, AsOfTimes.ties(node))), nearest, edges,
      closing.map(_.ages(left.length - 1)), closing.fold(1)(_.streams.length))
  }

  /** A version that had its stamp before its time counts for every row after it: see `Versions`. */
  private def certain: Option[Expression] = Option.when(stamps.nonEmpty && stamps.length == ofBoth.length)(stamps.map { stamp =>
    val none = IsNull(stamp): Expression
    if (times.forward) none else Or(none, GreaterThanOrEqual(TimeWindows.micros(times.right), TimeWindows.micros(stamp)))
  }.reduce(And(_, _)))
}

/** The left rows of an as-of join are complete, and freed, when the watermarks of `streams` have passed their time by `reach` microseconds: no version
  * counts for a row that has come before it and is older than that.
  */
final class AsOfClosing(val streams: Array[String], val reach: Long) {
  /** As `Closing` has it: versions, and the rows of the left side, come from streams themselves. */
  def delay: Long = 0
  def ages(time: Int): Ages = Ages(time, over = reach + 1, kept = reach + 1)
}

object AsOfClosing {
  /** As the condition says under which versions count, of versions that are the rows of one stream: see `Versions`. */
  def of(join: AsOfJoin): Option[AsOfClosing] = for {
    times <- AsOfTimes.of(join)
    stamps = join.condition.toSeq.flatMap(JoinPlan.conjuncts).flatMap(Versions.stampIn) if stamps.nonEmpty
    stream <- join.right.collectLeaves().map(Door.relation).distinct match { case Seq(one) => Option(one); case _ => None }
    reach <- times.reach
  } yield new AsOfClosing(stamps.map(stamp => Hidden.streamOf(stamp.name).getOrElse(stream)).distinct.sorted.toArray, reach)
}

/** The times that an as-of join compares, the left one with the right one.
  *
  * @param forward whether the right one lies after the left one
  * @param exact whether they may be equal
  * @param within how far apart they may be
  */
final case class AsOfTimes(left: Expression, right: Expression, forward: Boolean, exact: Boolean, comparison: Expression, within: Seq[Expression]) {
  /** How many microseconds after the left one the right one can be; None where that is not known. */
  def reach: Option[Long] = if (!forward) Some(0L) else within.flatMap(JoinPlan.conjuncts).flatMap(TimeBounds.ordered).flatMap { case (lesser, greater, _) =>
    val ((low, a), (high, b)) = (Distance.parted(lesser), Distance.parted(greater))
    Option.when(low.semanticEquals(right) && high.semanticEquals(left))(b - a)
  }.minOption
}

object AsOfTimes {
  /** None where the nearest row is looked for in both directions. */
  def of(join: AsOfJoin): Option[AsOfTimes] = {
    val comparison +: within = JoinPlan.conjuncts(join.asOfCondition): @unchecked
    val compared = comparison match {
      case GreaterThanOrEqual(l, r) => Some((l, r, false, true))
      case GreaterThan(l, r) => Some((l, r, false, false))
      case LessThanOrEqual(l, r) => Some((l, r, true, true))
      case LessThan(l, r) => Some((l, r, true, false))
      case _ => None
    }
    compared.collect { case (l, r, forward, exact) if isOf(l, join.left) && isOf(r, join.right) => AsOfTimes(l, r, forward, exact, comparison, within) }
  }
  private def isOf(e: Expression, side: LogicalPlan): Boolean = e.references.subsetOf(side.outputSet)

  /** The join with `ties` to decide between right rows of the same time, for Spark's operator too: of those the last is taken, or looking forward the
    * first. Beside them stand NULLs in the order of the left rows.
    */
  def tied(join: AsOfJoin, ties: Seq[Expression]): AsOfJoin = of(join).fold(join.copy(requiresSortMergeAsOfJoin = true)) { times =>
    val (lefts, rights) = join.leftSortExprs.zip(join.rightSortExprs).filterNot { case (l, _) => isMark(l) }.unzip
    val (left, right) = if (lefts.isEmpty) (Seq(times.left), Seq(times.right)) else (lefts, rights)
    join.copy(leftSortExprs = left ++ ties.map(_ => Mark), rightSortExprs = right ++ ties, requiresSortMergeAsOfJoin = true)
  }
  def ties(join: AsOfJoin): Seq[Expression] = join.leftSortExprs.zip(join.rightSortExprs).collect { case (l, tie) if isMark(l) && !tie.foldable => tie }

  private val Mark = Literal(null, NullType)
  private def isMark(e: Expression): Boolean = e == Mark
}
