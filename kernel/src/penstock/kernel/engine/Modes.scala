package penstock.kernel.engine

import java.nio.ByteBuffer
import java.util.Comparator
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.types.DataType
import penstock.kernel.state.Entries

/** `mode`, whether rows leave or not: a change costs the change, however large the group.
  *
  * State: collection 0, value -> how often; 1, (how often, value), whose last entry is the answer: of values that are there equally often the last one in
  * the order of values, which may be turned round.
  */
case class ModeFold(arguments: Arguments, reverse: Boolean) extends Fold {
  override def longs: Int = 0
  override def merges: Boolean = false
  @transient override lazy val collections: Seq[Comparator[Array[Byte]]] = Seq(Operator.Bytes, new RankOrder(valueType, reverse, ModeFold.Counted))

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
    val most = entries(1).lastKey
    Extremes.fill(if (most == null) null else ModeFold.value(most), held, valueType, buffer, at)
  }
}

object ModeFold {
  /** So many bytes say how often, before the value. */
  private val Counted = 8

  private def ranked(times: Long, value: Array[Byte]): Array[Byte] = ByteBuffer.allocate(Counted + value.length).putLong(times).put(value).array
  private def value(ranked: Array[Byte]): Array[Byte] = java.util.Arrays.copyOfRange(ranked, Counted, ranked.length)
}
