package penstock.kernel.engine

import java.util.{Arrays, Comparator}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.types.{ArrayType, DataType}
import penstock.kernel.state.Entries

/** `collect_union`: the elements of the group's arrays, each once, in the order of their bytes. What counts as an element and which of them are equal
  * is left to Spark's function, which gets each as an array of its own.
  *
  * State: a collection, element -> how often. The answer itself is as long, so is the work on it.
  *
  * @param inner Spark's function
  */
case class UnionFold(inner: Fold, arguments: Arguments) extends Fold {
  override def longs: Int = 0
  override def merges: Boolean = false
  override def collections: Seq[Comparator[Array[Byte]]] = Seq(Operator.Bytes)

  private def elementType: DataType = arguments.types.head.asInstanceOf[ArrayType].elementType
  @transient private lazy val alone = UnsafeProjection.create(Array[DataType](ArrayType(elementType)))

  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit = ()

  override def keep(g: Gathered, n: Int, o: Int, entries: Array[Entries], row: UnsafeRow, input: Int, weight: Long, place: Long): Unit =
    if (!row.isNullAt(input)) {
      val elements = row.getArray(input)
      var i = 0
      while (i < elements.numElements) {
        Multiset.add(entries(0), bytesOf(if (elements.isNullAt(i)) null else elements.get(i, elementType)), weight)
        i += 1
      }
    }
  private def bytesOf(element: Any): Array[Byte] = {
    val made = alone(InternalRow(new GenericArrayData(Array[Any](element))))
    Arrays.copyOf(made.getBytes, made.getSizeInBytes)
  }

  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit = {
    val gathered = new Gathered(inner.longs, inner.objects)
    val cursor = entries(0).ascending
    while (cursor.next()) inner.add(gathered, 0, 0, arguments.row(cursor.key, 0), arguments.at, 1)
    inner.fill(gathered, 0, 0, Array.empty, buffer, at)
  }
}
