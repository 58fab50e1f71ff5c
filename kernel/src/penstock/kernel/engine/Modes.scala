package penstock.kernel.engine

import java.nio.ByteBuffer
import java.util.Comparator
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.types.DataType
import penstock.kernel.state.Entries

/** `mode`, whether rows leave or not: a change costs the change, however large the group.
  *
  * State: collection 0, value -> how often; 1, (how often, value), whose last entry is the answer. Of values that are there equally often that is, where
  * the function was given an order, the last one in it. Where it was not, Spark's function is asked: what it says is a matter of all values that the group
  * has, and so the work is as long as they are.
  *
  * @param inner Spark's function
  * @param reverse whether the order is turned round, where there is one
  */
case class ModeFold(inner: Fold, arguments: Arguments, reverse: Option[Boolean]) extends Fold {
  override def longs: Int = 0
  override def merges: Boolean = false
  @transient override lazy val collections: Seq[Comparator[Array[Byte]]] =
    Seq(Operator.Bytes, reverse.fold(Operator.Bytes)(new RankOrder(valueType, _, ModeFold.Counted)))

  private def valueType: DataType = arguments.types.head
  @transient private lazy val held = new UnsafeRow(1)

  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit = ()

  override def keep(g: Gathered, n: Int, o: Int, entries: Array[Entries], row: UnsafeRow, input: Int, weight: Long, place: Long): Unit =
    if (!row.isNullAt(input)) {
      val value = arguments.of(row)
      val before = entries(0).get(value)
      if (before != null) entries(1).remove(ModeFold.ranked(Multiset.count(before), value))
      Multiset.add(entries(0), value, weight)
      val after = entries(0).get(value)
      if (after != null) entries(1).put(ModeFold.ranked(Multiset.count(after), value), Array.emptyByteArray)
    }

  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit = {
    val cursor = entries(1).descending
    val most = if (cursor.next()) cursor.key else null
    if (most != null && reverse.isEmpty && cursor.next() && ModeFold.times(cursor.key) == ModeFold.times(most))
      chosen(entries(0), ModeFold.times(most), buffer, at)
    else Extremes.fill(if (most == null) null else ModeFold.value(most), held, valueType, buffer, at)
  }

  /** How often a value is there does not matter to Spark's choice, but for those that are there most often. */
  private def chosen(values: Entries, most: Long, buffer: InternalRow, at: Int): Unit = {
    val gathered = new Gathered(inner.longs, inner.objects)
    val cursor = values.ascending
    while (cursor.next()) inner.add(gathered, 0, 0, arguments.row(cursor.key, 0), arguments.at, if (Multiset.count(cursor.value) == most) 2 else 1)
    inner.fill(gathered, 0, 0, Array.empty, buffer, at)
  }
}

object ModeFold {
  /** So many bytes say how often, before the value. */
  private val Counted = 8

  private def ranked(times: Long, value: Array[Byte]): Array[Byte] = ByteBuffer.allocate(Counted + value.length).putLong(times).put(value).array
  private def times(ranked: Array[Byte]): Long = ByteBuffer.wrap(ranked).getLong
  private def value(ranked: Array[Byte]): Array[Byte] = java.util.Arrays.copyOfRange(ranked, Counted, ranked.length)
}
