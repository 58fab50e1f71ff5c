package org.apache.spark.sql.penstock

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project, View}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/** What Spark's analyzer learns when a session starts. */
final class Extensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = extensions.injectResolutionRule(_ => OpenStreams)
}

/** A stream is known under its name as a view, whose hidden columns Spark does not show; without the view they are there when they are named: the time
  * when a record was appended, and its place.
  */
object OpenStreams extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp { case view: View if isStream(view.child) => view.child }

  private def isStream(plan: LogicalPlan): Boolean = plan match {
    case Project(_, child) => isStream(child)
    case relation: DataSourceV2Relation => relation.options.getBoolean("stream", false)
    case _ => false
  }
}
