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
  * A list keeps (place, value) -> how often; a value that leaves takes away the oldest that equals it. A set keeps value -> how often.
  * The answer itself is as long as the group, so is the work on it.
  */
case class CollectFold(valueType: DataType, set: Boolean) extends Fold {
  override def longs: Int = 0
  override def merges: Boolean = false
  override def collections: Seq[Comparator[Array[Byte]]] = Seq(Operator.Bytes)
  @transient private lazy val held = new UnsafeRow(1)
  @transient private var bytesAt: ValueBytes = _

  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit = ()
  override def keep(entries: Array[Entries], row: UnsafeRow, input: Int, weight: Long, place: Long): Unit =
    if (!row.isNullAt(input)) {
      if (bytesAt == null) bytesAt = new ValueBytes(input, valueType)
      val value = bytesAt(row)
      if (set) Multiset.add(entries(0), value, weight)
      else if (weight > 0) Multiset.add(entries(0), placed(place, value), weight)
      else takeOldest(entries(0), value, -weight)
    }

  private def takeOldest(entries: Entries, value: Array[Byte], times: Long): Unit = {
    var left = times
    val found = ArrayBuffer.empty[(Array[Byte], Long)]
    val cursor = entries.ascending
    while (left > 0 && cursor.next()) {
      val key = cursor.key
      if (java.util.Arrays.equals(key, 8, key.length, value, 0, value.length)) {
        val taken = math.min(left, Multiset.count(cursor.value))
        found += ((key, taken))
        left -= taken
      }
    }
    found.foreach { case (key, taken) => Multiset.add(entries, key, -taken) }
  }

  /** The place big-endian, so that bytes sort as places do. */
  private def placed(place: Long, value: Array[Byte]): Array[Byte] =
    java.nio.ByteBuffer.allocate(8 + value.length).putLong(place).put(value).array

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
