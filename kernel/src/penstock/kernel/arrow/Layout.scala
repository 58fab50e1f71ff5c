package penstock.kernel.arrow

import org.apache.spark.sql.types._

/** Where the columns of a record batch lie: Arrow flattens all columns, depth first, into one list of nodes and one list of buffers.
  *
  * @param nodes the first node of each column
  * @param buffers the first buffer of each column
  */
final class Layout(val types: Array[DataType]) {
  val nodes: Array[Int] = types.scanLeft(0)(_ + Layout.nodes(_))
  val buffers: Array[Int] = types.scanLeft(0)(_ + Layout.buffers(_))
}

object Layout {
  def nodes(found: DataType): Int = found match {
    case ArrayType(element, _) => 1 + nodes(element)
    case MapType(key, value, _) => 2 + nodes(key) + nodes(value)
    case StructType(fields) => fields.foldLeft(1)((sum, field) => sum + nodes(field.dataType))
    case _ => 1
  }

  def buffers(found: DataType): Int = found match {
    case StringType | BinaryType => 3
    case ArrayType(element, _) => 2 + buffers(element)
    case MapType(key, value, _) => 3 + buffers(key) + buffers(value)
    case StructType(fields) => fields.foldLeft(1)((sum, field) => sum + buffers(field.dataType))
    case _ => 2
  }
}
