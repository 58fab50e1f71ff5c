package penstock.kernel.engine

import java.util.Comparator
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.types.DataType
import penstock.kernel.state.Entries
import scala.collection.mutable.ArrayBuffer

/** `collect_list` and `collect_set`: the group's values, in the order of their places, or each once in the order of the type.
  *
  * A list keeps its values by place; a value that leaves takes away the oldest that equals it. A set keeps value -> how often.
  * The answer itself is as long as the group, so is the work on it.
  */
case class CollectFold(valueType: DataType, set: Boolean) extends Fold {
  override def longs: Int = 0
  override def merges: Boolean = false
  override def collections: Seq[Comparator[Array[Byte]]] = if (set) Seq(Operator.Bytes) else Seq(Operator.Bytes, Operator.Bytes)
  @transient private lazy val held = new UnsafeRow(1)
  @transient private var bytesAt: ValueBytes = _

  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit = ()
  override def keep(g: Gathered, n: Int, o: Int, entries: Array[Entries], row: UnsafeRow, input: Int, weight: Long, place: Long): Unit =
    if (!row.isNullAt(input)) {
      if (bytesAt == null) bytesAt = new ValueBytes(input, valueType)
      val value = bytesAt(row)
      if (set) Multiset.add(entries(0), value, weight) else Oldest.change(entries, value, place, weight)
    }

  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit = {
    val values = ArrayBuffer.empty[Any]
    val cursor = entries(0).ascending
    while (cursor.next()) {
      val bytes = if (set) cursor.key else java.util.Arrays.copyOfRange(cursor.key, 8, cursor.key.length)
      held.pointTo(bytes, bytes.length)
      val value = InternalRow.copyValue(held.get(0, valueType))
      var times = if (set) 1 else Multiset.count(cursor.value)
      while (times > 0) {
        values += value
        times -= 1
      }
    }
    buffer.update(at, new GenericArrayData(values.toArray))
  }
}
