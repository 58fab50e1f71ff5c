package penstock.kernel.engine

import java.io.{DataInput, DataOutput}
import java.util.{ArrayList, Collection, TreeSet}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.types.DataType
import penstock.kernel.state.Entries

/** `collect_list` and `collect_set` over the rows of a frame: the values in the frame's order, or each once, in the order of their bytes.
  *
  * One object: the values.
  */
case class ListFold(valueType: DataType, set: Boolean, ignoreNulls: Boolean) extends Fold {
  override def longs: Int = 0
  override def objects: Int = 1
  override def merges: Boolean = true
  @transient private lazy val held = new UnsafeRow(1)
  @transient private var bytesAt: ValueBytes = _

  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit =
    if (!ignoreNulls || !row.isNullAt(input)) {
      if (bytesAt == null) bytesAt = new ValueBytes(input, valueType)
      val value = bytesAt(row)
      var left = if (set) 1L else weight
      while (left > 0) {
        of(g, o).add(value)
        left -= 1
      }
    }
  override def merge(g: Gathered, n: Int, o: Int, other: Gathered): Unit = of(g, o).addAll(of(other, o))

  private def empty: Collection[Array[Byte]] = if (set) new TreeSet[Array[Byte]](Operator.Bytes) else new ArrayList[Array[Byte]]()
  private def of(g: Gathered, o: Int): Collection[Array[Byte]] = {
    if (g.things(o) == null) g.things(o) = empty
    g.things(o).asInstanceOf[Collection[Array[Byte]]]
  }

  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit = {
    val values = of(g, o).toArray(ListFold.None).map { bytes =>
      held.pointTo(bytes, bytes.length)
      InternalRow.copyValue(held.get(0, valueType))
    }
    buffer.update(at, new GenericArrayData(values))
  }
  override def write(thing: AnyRef, out: DataOutput): Unit = {
    val values = if (thing == null) empty else thing.asInstanceOf[Collection[Array[Byte]]]
    out.writeInt(values.size)
    values.forEach(value => Extremes.write(value, out))
  }
  override def read(in: DataInput): AnyRef = {
    val values = empty
    var left = in.readInt()
    while (left > 0) {
      values.add(Extremes.read(in))
      left -= 1
    }
    values
  }
}

object ListFold {
  private val None = Array.empty[Array[Byte]]
}
