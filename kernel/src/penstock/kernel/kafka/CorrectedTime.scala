package penstock.kernel.kafka

import org.apache.spark.sql.execution.vectorized.{OnHeapColumnVector, WritableColumnVector}
import org.apache.spark.sql.types.StructType
import penstock.kernel.log.Correction

/** An event time that is made from three other columns, which are therefore read whether they are wanted or not.
  *
  * `src/penstock/log/correction.py` has the rule.
  */
final class CorrectedTime(rule: Correction, time: String, columns: StructType, wanted: String => WritableColumnVector, capacity: Int) {
  private val made = Seq(rule.occurred, rule.sent, rule.received, time).distinct.map { name =>
    name -> Option(wanted(name)).getOrElse(new OnHeapColumnVector(capacity, columns(name).dataType))
  }.toMap
  private val (occurred, sent, received, corrected) = (made(rule.occurred), made(rule.sent), made(rule.received), made(time))

  def column(name: String): WritableColumnVector = made.getOrElse(name, wanted(name))

  def reset(): Unit = made.values.foreach(_.reset())

  def make(row: Int): Unit = {
    val fits = !sent.isNullAt(row) && !received.isNullAt(row) && !occurred.isNullAt(row) &&
      math.abs(received.getLong(row) - sent.getLong(row)) <= rule.bound
    corrected.putNotNull(row)
    if (fits) corrected.putLong(row, occurred.getLong(row) + received.getLong(row) - sent.getLong(row))
    else if (!received.isNullAt(row)) corrected.putLong(row, received.getLong(row))
    else if (!occurred.isNullAt(row)) corrected.putLong(row, occurred.getLong(row))
    else corrected.putNull(row)
  }
}
