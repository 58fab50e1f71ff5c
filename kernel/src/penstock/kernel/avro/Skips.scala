package penstock.kernel.avro

import org.apache.avro.Schema
import org.apache.avro.Schema.Type

import scala.jdk.CollectionConverters._

/** Passes over values of a schema. Schemas may hold themselves: they are looked at while values are passed. */
object Skips {
  def skip(schema: Schema, in: Encoded): Unit = schema.getType match {
    case Type.NULL => ()
    case Type.BOOLEAN => in.boolean()
    case Type.INT => in.int()
    case Type.LONG => in.long()
    case Type.ENUM => in.index(schema.getEnumSymbols.size)
    case Type.FLOAT => in.take(4)
    case Type.DOUBLE => in.take(8)
    case Type.FIXED => in.take(schema.getFixedSize)
    case Type.STRING | Type.BYTES => in.take(in.long())
    case Type.UNION => skip(schema.getTypes.get(in.index(schema.getTypes.size)), in)
    case Type.RECORD => schema.getFields.asScala.foreach(field => skip(field.schema, in))
    case Type.ARRAY => blocks(in)(skip(schema.getElementType, in))
    case Type.MAP => blocks(in) { in.take(in.long()); skip(schema.getValueType, in) }
  }

  private def blocks(in: Encoded)(element: => Unit): Unit = {
    var count = in.count()
    while (count > 0) {
      element
      count -= 1
      if (count == 0) count = in.count()
    }
  }
}
