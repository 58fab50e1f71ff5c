package org.apache.spark.sql.penstock

import java.util.{EnumSet, Set => JavaSet}
import org.apache.spark.sql.connector.catalog.{MetadataColumn, SupportsMetadataColumns, SupportsRead, Table, TableCapability}
import org.apache.spark.sql.connector.read.{Scan, ScanBuilder, SupportsPushDownRequiredColumns}
import org.apache.spark.sql.types._
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import penstock.kernel.source.Hidden

/** A declared stream, table or view as Catalyst sees it while it plans: columns, some of them hidden, and no rows. `others` are the streams whose
  * watermarks its rows know besides their own; with `makers`, they also know the records that made them.
  */
case class DeclaredTable(relation: String, fields: StructType, others: Seq[String], makers: Boolean) extends Table with SupportsRead with SupportsMetadataColumns {
  override def name(): String = relation
  override def schema(): StructType = fields
  override def capabilities(): JavaSet[TableCapability] = EnumSet.of(TableCapability.BATCH_READ)
  override def metadataColumns(): Array[MetadataColumn] = Array(
    DeclaredTable.hidden("_partition", IntegerType),
    DeclaredTable.hidden("_offset", LongType),
    DeclaredTable.hidden("_appended_at", TimestampType),
    DeclaredTable.hidden("_place", LongType),
    DeclaredTable.hidden(Hidden.Watermark, TimestampType, nullable = true)) ++
    Hidden.Makers.filter(_ => makers).zip(Seq(IntegerType, LongType, StringType)).map { case (name, of) => DeclaredTable.hidden(name, of) } ++
    others.map(stream => DeclaredTable.hidden(Hidden.watermarkOf(stream), TimestampType, nullable = true))
  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = new DeclaredScanBuilder(relation, fields)
}

object DeclaredTable {
  private def hidden(column: String, of: DataType, nullable: Boolean = false): MetadataColumn = new MetadataColumn {
    override def name(): String = column
    override def dataType(): DataType = of
    override def isNullable: Boolean = nullable
  }
}

/** Only the columns that a query reads are left of its scan. */
final class DeclaredScanBuilder(relation: String, columns: StructType) extends ScanBuilder with SupportsPushDownRequiredColumns {
  private var wanted = columns
  /** Whole columns: of a struct Spark would name only the fields that it needs, but our rows have all of them. */
  override def pruneColumns(required: StructType): Unit =
    wanted = StructType(required.map(field => columns.find(_.name == field.name).getOrElse(field)))
  override def build(): Scan = DeclaredScan(relation, wanted)
}

case class DeclaredScan(relation: String, columns: StructType) extends Scan {
  override def readSchema(): StructType = columns
}
