package penstock.kernel.engine

import penstock.kernel.Checks

/** The operators, the folds of aggregates and what carries rows between them, against plain collections: no Spark session. */
object OperatorChecks {
  def main(args: Array[String]): Unit = {
    val checks = new Checks(args)
    TableChecks.run(checks)
    JoinChecks.run(checks)
    AsOfChecks.run(checks)
    RetainedChecks.run(checks)
    FoldChecks.run(checks)
    RankChecks.run(checks)
    ListChecks.run(checks)
    SumChecks.run(checks)
    FusedChecks.run(checks)
    DeliveryChecks.run(checks)
    TimeChecks.run(checks)
    FormatChecks.run(checks)
    ConsolidationChecks.run(checks)
    StoredPagesChecks.run(checks)
    RelayChecks.run(checks)
    checks.close()
  }
}
