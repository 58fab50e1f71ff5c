package org.apache.spark.sql.penstock

import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.{Dataset => ClassicDataset}

/** What is done to the rows of a source by Spark's own operators, before they become envelopes: there Python functions can be called. */
object Streams {
  /** The rows with their first columns under the names and numbers of `columns`. */
  def known(rows: DataFrame, columns: Seq[Attribute]): DataFrame = over(rows) { plan =>
    val named = plan.output.zip(columns).map { case (mine, theirs) => if (mine.exprId == theirs.exprId) mine else Alias(mine, theirs.name)(theirs.exprId) }
    Project(named ++ plan.output.drop(columns.size), plan)
  }

  def passing(rows: DataFrame, condition: Expression): DataFrame = over(rows)(Filter(condition, _))

  def generated(rows: DataFrame, generator: Generator, outer: Boolean, made: Seq[Attribute]): DataFrame =
    over(rows)(Generate(generator, Nil, outer, None, made, _))

  /** The rows as `items`, and behind them what they have besides. */
  def computed(rows: DataFrame, items: Seq[NamedExpression]): DataFrame = over(rows) { plan =>
    val taken = items.map(_.exprId).toSet
    Project(items ++ plan.output.filterNot(a => taken(a.exprId)), plan)
  }

  /** The records that are rows. */
  def present(records: DataFrame): DataFrame = over(records)(plan => Filter(Not(deleted(plan)), plan))

  /** The rows, and at the place of every record a deletion of what was there before. */
  def outlived(records: DataFrame, rows: DataFrame, key: Seq[String]): DataFrame = over(records) { plan =>
    val kept = plan.output.filter(a => key.contains(a.name) || a.name.startsWith("_")).map(a => a.name -> a).toMap
    val alive = analyzed(rows)
    val gone = alive.output.map { a =>
      val value = if (a.name == "_deleted") Literal(true) else kept.get(a.name).filter(_.dataType == a.dataType).getOrElse(Literal(null, a.dataType))
      Alias(value, a.name)()
    }
    Union(Project(gone, plan), alive)
  }

  /** The plan with what functions give under the name of the call. */
  def titled(plan: LogicalPlan): LogicalPlan = {
    val titles = plan.collect { case node: BaseEvalPython => node.resultAttrs.zip(node.udfs).map { case (a, call) => a.exprId -> call.sql } }.flatten.toMap
    if (titles.isEmpty) plan
    else plan.transformAllExpressions { case a: AttributeReference if titles.contains(a.exprId) => a.withName(titles(a.exprId)) }
  }

  private def deleted(plan: LogicalPlan): Attribute = plan.output.find(_.name == "_deleted").get
  private def analyzed(rows: DataFrame): LogicalPlan = rows.asInstanceOf[ClassicDataset[Row]].queryExecution.analyzed
  private def over(rows: DataFrame)(change: LogicalPlan => LogicalPlan): DataFrame =
    ClassicDataset.ofRows(rows.asInstanceOf[ClassicDataset[Row]].sparkSession, change(analyzed(rows)))
}
