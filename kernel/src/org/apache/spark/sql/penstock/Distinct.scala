package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression, Literal, MapSort, RuntimeReplaceableAggregate}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, AggregateFunction}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.{DataType, MapType, StructType}

/** An aggregate function over distinct values, as Catalyst's optimizer shall leave it alone.
  *
  * Its own way with several of them (one row for each, numbered) numbers them by hashes that are others in every process: state could not be
  * read after a restart. Our folds keep distinct values themselves.
  */
case class Distinct(function: AggregateFunction) extends AggregateFunction {
  override def children: Seq[Expression] = function.children
  override def nullable: Boolean = function.nullable
  override def dataType: DataType = function.dataType
  /** Of no rows: a subquery that refers to the row, and finds none, counts 0. */
  override def defaultResult: Option[Literal] = function.defaultResult
  override def prettyName: String = s"${function.prettyName}_distinct"
  override def aggBufferSchema: StructType = function.aggBufferSchema
  override def aggBufferAttributes: Seq[AttributeReference] = function.aggBufferAttributes
  override def inputAggBufferAttributes: Seq[AttributeReference] = function.inputAggBufferAttributes
  override def eval(row: InternalRow): Any = throw new UnsupportedOperationException("only planned with")
  override protected def doGenCode(context: CodegenContext, code: ExprCode): ExprCode = throw new UnsupportedOperationException("only planned with")
  override protected def withNewChildrenInternal(changed: IndexedSeq[Expression]): Expression =
    Distinct(function.withNewChildren(changed).asInstanceOf[AggregateFunction])
}

object Distinct {
  def hidden(analyzed: LogicalPlan): LogicalPlan = analyzed.transformAllExpressionsWithSubqueries {
    case e: AggregateExpression if e.isDistinct => e.copy(aggregateFunction = Distinct(sorted(itself(e.aggregateFunction))), isDistinct = false)
  }
  /** As the optimizer would do here too: maps with the same entries are one value, in whatever order these stand. */
  private def sorted(function: AggregateFunction): AggregateFunction =
    function.mapChildren(child => if (child.dataType.isInstanceOf[MapType]) MapSort(child) else child).asInstanceOf[AggregateFunction]
  /** What Catalyst's optimizer would put in its place, if it saw the function: `median` is a percentile. */
  private def itself(function: AggregateFunction): AggregateFunction = function match {
    case named: RuntimeReplaceableAggregate => named.replacement match {
      case other: AggregateFunction => itself(other)
      case _ => function
    }
    case _ => function
  }
  def shown(e: AggregateExpression): AggregateExpression = e.aggregateFunction match {
    case Distinct(function) => e.copy(aggregateFunction = function, isDistinct = true)
    case _ => e
  }
}
