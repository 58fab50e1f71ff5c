package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate => LogicalAggregate, Expand, Filter, LogicalPlan, Project}
import org.apache.spark.sql.types.LongType
import penstock.kernel.engine.{Aggregate, Edge, Operator, Slices}
import penstock.kernel.source.Hidden

/** Groups by windows that overlap, cut into slices: see `Slices`.
  *
  * @param slide how far windows are apart, a part of how long they are
  * @param latest which of the windows of a row starts last; there are `overlaps` of them
  */
final class Slicing(plan: AggregatePlan, val slide: Long, val length: Long, window: Int, clocks: Int, val latest: Int) {
  val overlaps: Int = (length / slide).toInt

  /** For people. */
  def text: String = s"each row once, for all its $overlaps windows"

  /** The key of rows: their slice, the first window that they are in time for, the other groups.
    *
    * @param groups the key of the aggregate, of the row's latest window
    * @param filters what leaves out rows that are too late even for that one
    */
  def key(groups: Seq[Expression], filters: Seq[Expression]): Seq[Expression] = {
    val start = Slicing.start(groups(window))
    val stamps = filters.flatMap(Slicing.stamps).distinctBy(_.canonicalized)
    val in = Add(start, Literal(slide))
    val first = stamps.map(stamp => Coalesce(Seq(TimeWindows.micros(stamp), Literal(Long.MinValue)))).reduceOption[Expression]((a, b) => Least(Seq(a, b))).fold[Expression](in) {
      watermark => If(LessThan(watermark, in), in, Add(Subtract(watermark, Remainder(Subtract(watermark, start), Literal(slide))), Literal(slide)))
    }
    Seq(start, first) ++ groups.patch(window, Nil, 1)
  }

  def operator(id: Int, edges: Seq[Edge]): Operator = {
    val of = plan.keys(window).dataType.asInstanceOf[org.apache.spark.sql.types.StructType]
    val others = plan.keys.patch(window, Nil, 1).zipWithIndex.map { case (key, i) => BoundReference(2 + i, key.dataType, key.nullable) }
    val made = LongStruct(of, Seq(0, 1).map(i => BoundReference(i, of(i).dataType, nullable = false)))
    Slices(plan.operator(id, edges, None).asInstanceOf[Aggregate], slide, length, clocks, others.patch(window, Seq(made), 0))
  }
}

object Slicing {
  /** Where rows only come, what two gathered can be put together, and windows are shown once, when they are complete. */
  def of(node: LogicalAggregate, plan: AggregatePlan, closing: Closing): Option[Slicing] = for {
    timing <- closing.timing if timing.waits && timing.struct && timing.allowed == 0 && timing.more == 0
    if plan.gathering.merges && !plan.ordered && !plan.gathering.keeps && plan.gap.isEmpty
    window <- Option(node.groupingExpressions(timing.window)).collect { case a: Attribute => a }
    if !(node.groupingExpressions.patch(timing.window, Nil, 1) ++ plan.inputs).exists(_.references.contains(window))
    (expand, column) <- made(node.child, window)
    (slide, length, latest) <- overlapping(expand, column)
  } yield new Slicing(plan, slide, length, timing.window, timing.clocks, latest)

  /** Where the windows are made, if nothing on the way looks at them but the condition that leaves out late rows. */
  private def made(plan: LogicalPlan, window: Attribute): Option[(Expand, Attribute)] = plan match {
    case Filter(condition, child) if JoinPlan.conjuncts(condition).forall(c => Lateness.isIn(c) || !c.references.contains(window)) => made(child, window)
    case Project(items, child) =>
      val below = items.find(_.exprId == window.exprId).collect { case a: Attribute => a; case Alias(a: Attribute, _) => a }
      below.filter(a => items.count(_.references.contains(a)) == 1).flatMap(made(child, _))
    case expand: Expand if expand.output.exists(_.exprId == window.exprId) => Some((expand, expand.output.find(_.exprId == window.exprId).get))
    case _ => None
  }

  /** How far the windows are apart, how long they are, and which is the last; they must be all windows of one time, and rows otherwise equal. */
  private def overlapping(expand: Expand, window: Attribute): Option[(Long, Long, Int)] = {
    val at = expand.output.indexWhere(_.exprId == window.exprId)
    val same = expand.projections.forall(each => each.indices.forall(i => i == at || each(i).semanticEquals(expand.projections.head(i))))
    val found = expand.projections.map(each => parts(each(at)))
    if (!same || found.exists(_.isEmpty) || found.size < 2) None
    else {
      val (bases, slides, lengths, backs) = (found.map(_.get._1), found.map(_.get._2), found.map(_.get._3), found.map(_.get._4))
      val (slide, length) = (slides.head, lengths.head)
      val whole = length % slide == 0 && backs.sorted == Seq.tabulate((length / slide).toInt)(_ * slide)
      Option.when(whole && slides.distinct.size == 1 && lengths.distinct.size == 1 && bases.forall(_.semanticEquals(bases.head)))(
        (slide, length, backs.indexOf(0L)))
    }
  }

  /** The start of the last window of a row's time, how far windows are apart, how long they are, and by how much this one starts sooner. */
  private def parts(window: Expression): Option[(Expression, Long, Long, Long)] = window match {
    case TimeWindows.Made(_, length) => start(window) match {
      case Subtract(base, Literal(back: Long, LongType), _) =>
        base.collect { case Remainder(_, Literal(slide: Long, LongType), _) => slide }.distinct match {
          case Seq(slide) => Some((base, slide, length, back))
          case _ => None
        }
      case _ => None
    }
    case _ => None
  }

  /** The start of a window that is made of a time, in microseconds. */
  private def start(window: Expression): Expression = TimeWindows.bare(window) match {
    case CreateNamedStruct(Seq(_, start, _, _)) => TimeWindows.bare(start) match {
      case PreciseTimestampConversion(number, LongType, _) => number
      case time => TimeWindows.micros(time)
    }
    case other => TimeWindows.micros(GetStructField(other, 0))
  }

  /** The watermarks in the condition that leaves out late rows. */
  private def stamps(condition: Expression): Seq[Attribute] = condition.collect {
    case PreciseTimestampConversion(stamp: Attribute, _, LongType) if stamp.name.startsWith(Hidden.Watermark) => stamp
  }
}
