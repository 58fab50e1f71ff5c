package penstock.kernel.avro

import org.apache.avro.Schema
import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.types.StructType

import scala.jdk.CollectionConverters._

/** Rows of a topic in values of one schema.
  *
  * State: which columns had a value in the row read last, and what did not fit. A value may end after any of its fields: it was written before
  * the others were there.
  */
final class AvroRow(schema: Schema, columns: StructType, column: String => WritableColumnVector) {
  private val written = schema.getFields.asScala.toArray
  private val places = written.map(field => columns.fieldNames.indexOf(field.name))
  private val reads = written.indices.map { at =>
    if (places(at) < 0) null else AvroReads.of(written(at).schema, columns(places(at)).dataType, column(written(at).name), s"""field "${written(at).name}"""")
  }.toArray
  private val vectors = columns.fieldNames.map(column)
  private val seen = new Array[Boolean](columns.length)
  private val misfits = new Array[Misfit](columns.length)

  def isPresent(field: Int): Boolean = seen(field)

  /** Reads a row; the first column that does not fit and why, or null. */
  def read(in: Encoded, row: Int): (String, Misfit) = {
    java.util.Arrays.fill(seen, false)
    var troubled = false
    var at = 0
    while (at < written.length && !in.isDone) {
      val start = in.at
      if (reads(at) eq null) Skips.skip(written(at).schema, in)
      else {
        reads(at).clear(row)
        try seen(places(at)) = reads(at).read(in, row)
        catch {
          case error: Misfit =>
            if (!troubled) java.util.Arrays.fill(misfits.asInstanceOf[Array[AnyRef]], null)
            troubled = true
            misfits(places(at)) = error
            in.at = start
            Skips.skip(written(at).schema, in)
        }
      }
      at += 1
    }
    if (!in.isDone) throw NotAvro
    var field = 0
    while (field < seen.length) {
      if (!seen(field) && (vectors(field) ne null)) vectors(field).putNull(row)
      field += 1
    }
    if (!troubled) null
    else {
      val first = misfits.indexWhere(_ ne null)
      columns(first).name -> misfits(first)
    }
  }
}
