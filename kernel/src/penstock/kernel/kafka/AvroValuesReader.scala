package penstock.kernel.kafka

import java.nio.ByteBuffer

import org.apache.avro.{AvroRuntimeException, Schema}
import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.types.StructType
import penstock.kernel.avro.{AvroRow, Derived, Encoded, NotAvro}
import penstock.kernel.log.{AvroValues, LogError}

/** Values in Avro, by the schemas that the topic declares. */
final class AvroValuesReader(declared: AvroValues, columns: StructType, column: String => WritableColumnVector) {
  private val plain = if (declared.ids.nonEmpty) null else row(declared.schema.fold(Derived.schema(columns))(parsed))
  private val rows = declared.ids.map { case (id, text) => id -> row(parsed(text)) }
  private val in = new Encoded
  private var last: AvroRow = _

  /** Reads a value into a row: null, or why it is none of the topic's. */
  def read(value: Array[Byte], row: Int): String =
    if (plain ne null) filled(plain, value, 0, row)
    else if (value.length < AvroValuesReader.Front || value(0) != 0) "its value does not begin with the id of a schema"
    else {
      val id = ByteBuffer.wrap(value).getInt(1)
      rows.get(id) match {
        case Some(found) => filled(found, value, AvroValuesReader.Front, row)
        case None => s"its value has schema ${Integer.toUnsignedString(id)}, which the topic does not declare"
      }
    }

  /** Whether a column had a value in the row read last. */
  def isPresent(field: Int): Boolean = last.isPresent(field)

  private def filled(found: AvroRow, value: Array[Byte], start: Int, row: Int): String = {
    last = found
    in.over(value, start)
    try {
      val trouble = found.read(in, row)
      if (trouble eq null) null else s"""in its value, field "${trouble._1}${trouble._2.path}": ${trouble._2.reason}"""
    } catch { case NotAvro => "its value is not Avro of its schema" }
  }

  private def row(schema: Schema): AvroRow = new AvroRow(schema, columns, column)

  private def parsed(text: String): Schema =
    try new Schema.Parser().parse(text)
    catch {
      case error: AvroRuntimeException => throw new LogError("an Avro schema of the topic cannot be read", String.valueOf(error.getMessage).take(200))
    }
}

object AvroValuesReader {

  /** A zero, and the id. */
  private val Front = 5
}
