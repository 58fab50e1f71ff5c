package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import penstock.kernel.source.Hidden

/** A plan whose rows have, behind the rest, the watermarks that stood when the record came from which their time comes, and whether that is further in
  * the future than can be; and as long as they have not met those of other branches, the record itself.
  */
final case class Stamped(plan: LogicalPlan, stamps: Map[String, Attribute], implausible: Attribute, record: Option[Record]) {
  def over(node: LogicalPlan => LogicalPlan): Stamped = copy(plan = node(plan))
  /** What the node's output does not have yet. */
  def more(output: Seq[NamedExpression]): Seq[Attribute] =
    (record.toSeq.flatMap(_.all) ++ stamps.values :+ implausible).distinctBy(_.exprId).filterNot(each => output.exists(_.exprId == each.exprId))
}

/** The columns of a stream's record, its own and the hidden ones. */
final case class Record(stream: String, own: Seq[Attribute], hidden: Seq[Attribute]) {
  def all: Seq[Attribute] = own ++ hidden
  def column(name: String): Attribute = hidden.find(_.name == name).get
}

/** Carries the watermarks of `streams` with a time through a plan. */
final class Stamping(eventTimes: Map[String, String], streams: Set[String]) {

  /** The plan with the stamps of the rows that `value`, an expression over its output, comes from. */
  def of(plan: LogicalPlan, value: Expression): Option[Stamped] = source(value).flatMap(column(plan, _))

  /** The column that a time, or a window, is made from. */
  private def source(e: Expression): Option[Attribute] = TimeWindows.bare(e) match {
    case a: Attribute => Some(a)
    case GetStructField(inside, _, _) => source(inside)
    case TimeWindows.LastMoment(inside) => source(inside)
    case TimeWindows.Made(inside, _) => source(inside)
    case TimeWindows.Ending(inside, _) => source(inside)
    case TimeWindows.Starting(inside, _) => source(inside)
    case TimeWindows.Gap(inside) => source(inside)
    case _ => None
  }

  private def column(plan: LogicalPlan, column: Attribute): Option[Stamped] = plan match {
    case relation: DataSourceV2Relation => record(relation, column)
    case Project(items, child) => items.find(_.exprId == column.exprId).flatMap(source).flatMap(this.column(child, _))
        .map(found => found.over(Project(items ++ found.more(items), _)))
    case expand: Expand => expanded(expand, column)
    case generate: Generate if generate.child.outputSet.contains(column) =>
      this.column(generate.child, column).map(_.over(child => generate.copy(unrequiredChildIndex = Nil, child = child)))
    case join: Join =>
      if (join.left.outputSet.contains(column)) this.column(join.left, column).map(_.over(left => join.copy(left = left)))
      else this.column(join.right, column).map(_.over(right => join.copy(right = right)))
    case join: AsOfJoin if join.left.outputSet.contains(column) => this.column(join.left, column).map(_.over(left => join.copy(left = left)))
    case window: Window if window.child.outputSet.contains(column) => this.column(window.child, column).map(_.over(child => window.copy(child = child)))
    case _: Filter | _: Sort | _: RepartitionOperation | _: ResolvedHint | _: Retained =>
      this.column(plan.children.head, column).map(_.over(child => plan.withNewChildren(Seq(child))))
    case union: Union => united(union, column)
    case _ => None
  }

  private def record(relation: DataSourceV2Relation, column: Attribute): Option[Stamped] = {
    val name = relation.options.get("relation")
    if (!eventTimes.get(name).exists(_.equalsIgnoreCase(column.name))) None
    else {
      val whole = relation.withMetadataColumns()
      val (hidden, own) = whole.output.partition(column => Hidden.isHidden(column.name))
      val record = Record(name, own, hidden)
      val stamps = streams.map(each => each -> record.column(if (each == name) Hidden.Watermark else Hidden.watermarkOf(each)))
      val odd = Alias(implausible(relation, record), "_implausible")()
      Some(Stamped(Project(whole.output :+ odd, whole), stamps.toMap, odd.toAttribute, Some(record)))
    }
  }

  /** Whether the time is more than the stream allows after the record was appended. */
  private def implausible(relation: DataSourceV2Relation, record: Record): Expression =
    Option(relation.options.get("plausible")).fold[Expression](Literal(false)) { most =>
      val time = record.own.find(_.name.equalsIgnoreCase(eventTimes(record.stream))).get
      val last = Add(TimeWindows.micros(record.column(Hidden.AppendedAt)), Literal(most.toLong))
      Coalesce(Seq(GreaterThan(TimeWindows.micros(time), last), Literal(false)))
    }

  private def expanded(expand: Expand, column: Attribute): Option[Stamped] = {
    val at = expand.output.indexWhere(_.exprId == column.exprId)
    expand.projections.map(each => source(each(at))).distinct match {
      case Seq(Some(found)) => this.column(expand.child, found).map { below =>
        val more = below.more(expand.output)
        below.over(child => Expand(expand.projections.map(_ ++ more), expand.output ++ more, child))
      }
      case _ => None
    }
  }

  /** Every branch has a record of its own; their stamps are the same columns. */
  private def united(union: Union, column: Attribute): Option[Stamped] = {
    val at = union.output.indexWhere(_.exprId == column.exprId)
    val found = union.children.map(child => this.column(child, child.output(at)))
    if (found.exists(_.isEmpty)) None
    else {
      val names = streams.toSeq.sorted
      val children = union.children.zip(found.flatten).map { case (child, each) => Project(child.output ++ names.map(each.stamps) :+ each.implausible, each.plan) }
      val made = Union(children, union.byName, union.allowMissingCol)
      val more = made.output.drop(union.output.size)
      // The union's own columns keep their numbers.
      val renamed = union.output.zip(made.output).map { case (old, now) => Alias(now, old.name)(old.exprId) }
      Some(Stamped(Project(renamed ++ more, made), names.zip(more).toMap, more.last, None))
    }
  }
}
