package penstock.kernel.source

import java.util

import org.apache.spark.sql.connector.catalog.{Table, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.sources.DataSourceRegister
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import penstock.kernel.log.Log

/** Spark's data source `penstock`: topics of an embedded log, in batch and streaming. Its options are in `ReadOptions`. */
final class PenstockSource extends TableProvider with DataSourceRegister {
  override def shortName(): String = "penstock"

  override def inferSchema(options: CaseInsensitiveStringMap): StructType = {
    val asked = ReadOptions.of(options)
    Log.at(asked.path).topic(asked.topic).newest
  }

  override def getTable(schema: StructType, partitioning: Array[Transform], properties: util.Map[String, String]): Table = {
    val asked = ReadOptions.of(new CaseInsensitiveStringMap(properties))
    new TopicTable(Log.at(asked.path), schema, asked.topic, asked.others.keys)
  }
}
