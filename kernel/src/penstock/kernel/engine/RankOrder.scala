package penstock.kernel.engine

import java.util.{Arrays, Comparator}
import org.apache.spark.sql.catalyst.expressions.{Ascending, BoundReference, Descending, SortOrder, UnsafeRow}
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateOrdering
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.Platform

/** The order in which percentiles and modes rank values, on rows of that one column, which begin after the first `skipped` bytes; these come first.
  *
  * Which of -0.0 and 0.0 comes first Spark leaves to its hash table, whichever way it sorts: most often it is -0.0.
  */
final class RankOrder(valueType: DataType, reverse: Boolean, skipped: Int = 0) extends Comparator[Array[Byte]] {
  private val ordering =
    GenerateOrdering.generate(Seq(SortOrder(BoundReference(0, valueType, nullable = true), if (reverse) Descending else Ascending)))
  private val left = new UnsafeRow(1)
  private val right = new UnsafeRow(1)

  override def compare(a: Array[Byte], b: Array[Byte]): Int = {
    val byBytes = Arrays.compareUnsigned(a, 0, skipped, b, 0, skipped)
    val byValue = if (byBytes != 0) byBytes else ordering.compare(at(a, left), at(b, right))
    if (byValue != 0) byValue else Arrays.compareUnsigned(b, a)
  }
  private def at(bytes: Array[Byte], row: UnsafeRow): UnsafeRow = {
    row.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET + skipped, bytes.length - skipped)
    row
  }
}
