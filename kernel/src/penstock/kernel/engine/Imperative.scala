package penstock.kernel.engine

import java.io.{DataInput, DataOutput}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{SpecificInternalRow, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.expressions.aggregate.ImperativeAggregate
import org.apache.spark.sql.types.DataType
import penstock.kernel.state.Entries

/** Any aggregate function of Spark that updates a buffer of values by its own code (`approx_count_distinct`, ...), where rows only come.
  *
  * `function` is bound to the row, its buffer begins at 0. One object: the buffer.
  */
case class ImperativeFold(function: ImperativeAggregate) extends Fold {
  override def longs: Int = 0
  override def objects: Int = 1
  override def merges: Boolean = false
  private val types: Seq[DataType] = function.aggBufferSchema.map(_.dataType)
  @transient private lazy val compact = UnsafeProjection.create(types.toArray)

  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit = {
    val buffer = held(g.things(o))
    var i = 0L
    while (i < weight) {
      function.update(buffer, row)
      i += 1
    }
    g.things(o) = buffer
  }
  private def held(thing: AnyRef): InternalRow =
    if (thing != null) thing.asInstanceOf[InternalRow]
    else {
      val buffer = new SpecificInternalRow(types)
      function.initialize(buffer)
      buffer
    }
  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit =
    buffer.update(at, function.eval(held(g.things(o))))
  override def write(thing: AnyRef, out: DataOutput): Unit = {
    val row = compact(held(thing))
    Extremes.write(java.util.Arrays.copyOf(row.getBytes, row.getSizeInBytes), out)
  }
  override def read(in: DataInput): AnyRef = {
    val bytes = Extremes.read(in)
    val row = new UnsafeRow(types.length)
    row.pointTo(bytes, bytes.length)
    val buffer = new SpecificInternalRow(types)
    types.indices.foreach(i => buffer.update(i, InternalRow.copyValue(row.get(i, types(i)))))
    buffer
  }
}
