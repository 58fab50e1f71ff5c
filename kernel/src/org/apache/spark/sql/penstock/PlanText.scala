package org.apache.spark.sql.penstock

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LocalRelation, LogicalPlan}
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.internal.SQLConf

/** A plan as text that is the same in every process, and another one when static rows are others; for files see `Door.filesOf`. */
object PlanText {
  def of(plan: LogicalPlan): String = {
    val fixed = plan.collectWithSubqueries { case leaf: LeafNode if Door.relation(leaf) == null => fixedText(leaf) }
    // The column that an existence join adds keeps its number there, which is another one in every process.
    val same = plan.canonicalized.transformAllExpressionsWithSubqueries { case e => ordered(e) }
    (whole(same).replaceAll("exists#\\d+", "exists") +: (modes(same) ++ fixed)).mkString("\n")
  }

  /** Spark would leave out what comes after the first fields of a row or a list. */
  private def whole(plan: LogicalPlan): String = {
    val settings = SQLConf.get.clone()
    settings.setConf(SQLConf.MAX_TO_STRING_FIELDS, Int.MaxValue)
    SQLConf.withExistingConf(settings)(plan.treeString(verbose = false, addSuffix = false, maxFields = Int.MaxValue))
  }

  /** What becomes of values that an expression has no answer for is not in its text. */
  private def modes(plan: LogicalPlan): Seq[String] = plan.collectWithSubqueries { case node => node.expressions.flatMap(_.collect { case e => modesOf(e) }.flatten) }.flatten
  private def modesOf(e: Expression): Option[String] = {
    val found = e.productElementNames.zip(e.productIterator).collect {
      case (name @ "failOnError", fails) => s"$name $fails"
      case (_, mode @ (_: EvalMode.Value | _: NumericEvalContext)) => mode.toString
    }
    Option.when(found.hasNext)(found.mkString(e.prettyName + " ", " ", ""))
  }

  private def fixedText(leaf: LeafNode): String = leaf match {
    case values: LocalRelation => values.data.mkString(" ")
    case LogicalRelation(_: HadoopFsRelation, _, _, _, _) => ""
    case rows: LogicalRDD => summed(rows)
    case other => other.canonicalized.simpleString(1000)
  }

  /** Rows that a program has made, in whatever order they come. */
  private def summed(rows: LogicalRDD): String = {
    val types = rows.output.map(_.dataType).toArray
    val hashes = rows.rdd.mapPartitions { some =>
      val pack = UnsafeProjection.create(types)
      some.map { row =>
        val packed = pack(row)
        XXH64.hashUnsafeBytes(packed.getBaseObject, packed.getBaseOffset, packed.getSizeInBytes, 42L)
      }
    }
    val (count, sum) = hashes.map((1L, _)).fold((0L, 0L)) { case ((n, all), (m, more)) => (n + m, all + more) }
    s"$count rows $sum"
  }

  /** What may stand in any order, in that of its text: Catalyst puts it into the order of hash codes, and that of a class is another one in every process. */
  private def ordered(expression: Expression): Expression = expression.transformUp {
    case chain: CommutativeExpression if chain.children.size == 2 => byText(operands(chain, chain)).reduceLeft((l, r) => chain.withNewChildren(Seq(l, r)))
    case some: CommutativeExpression => some.withNewChildren(byText(some.children))
    case some: MultiCommutativeOp => some.withNewChildren(byText(some.children))
    case In(value, list) => In(value, byText(list))
    case EqualTo(l, r) if isBefore(r, l) => EqualTo(r, l)
    case EqualNullSafe(l, r) if isBefore(r, l) => EqualNullSafe(r, l)
    case LessThan(l, r) if isBefore(r, l) => GreaterThan(r, l)
    case GreaterThan(l, r) if isBefore(r, l) => LessThan(r, l)
    case LessThanOrEqual(l, r) if isBefore(r, l) => GreaterThanOrEqual(r, l)
    case GreaterThanOrEqual(l, r) if isBefore(r, l) => LessThanOrEqual(r, l)
  }

  private def operands(of: Expression, in: Expression): Seq[Expression] =
    if (in.getClass == of.getClass && in.prettyName == of.prettyName) in.children.flatMap(operands(of, _)) else Seq(in)
  private def byText(some: Seq[Expression]): Seq[Expression] = some.sortBy(_.toString)
  private def isBefore(a: Expression, b: Expression): Boolean = a.toString < b.toString
}
