package penstock.kernel.engine

import java.io.{DataInput, DataOutput}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateMutableProjection
import penstock.kernel.state.Entries

/** Any aggregate function of Spark that works on a buffer of values, where rows only come: Spark's own buffer, updated in the order of place.
  *
  * `updates` are bound to the buffer's columns followed by the row's. One object: the buffer.
  */
case class BufferFold(initial: Seq[Expression], updates: Seq[Expression]) extends Fold {
  override def longs: Int = 0
  override def objects: Int = 1
  override def merges: Boolean = false
  @transient private lazy val start = UnsafeProjection.create(initial)
  @transient private lazy val update = GenerateMutableProjection.generate(updates)
  @transient private lazy val compact = UnsafeProjection.create(updates.map(_.dataType).toArray)
  @transient private lazy val joined = new JoinedRow()

  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit = {
    val buffer = held(g, o)
    update.target(buffer)
    var i = 0L
    while (i < weight) {
      update(joined(buffer, row))
      i += 1
    }
  }
  private def held(g: Gathered, o: Int): InternalRow = {
    if (g.things(o) == null) g.things(o) = mutable(start(InternalRow.empty))
    g.things(o).asInstanceOf[InternalRow]
  }
  private def mutable(row: InternalRow): InternalRow = {
    val types = updates.map(_.dataType)
    val buffer = new SpecificInternalRow(types)
    types.indices.foreach(i => buffer.update(i, InternalRow.copyValue(row.get(i, types(i)))))
    buffer
  }
  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit = {
    val row = held(g, o)
    updates.indices.foreach(i => buffer.update(at + i, InternalRow.copyValue(row.get(i, updates(i).dataType))))
  }
  override def write(thing: AnyRef, out: DataOutput): Unit = {
    val bytes = compact(if (thing == null) start(InternalRow.empty) else thing.asInstanceOf[InternalRow])
    Extremes.write(java.util.Arrays.copyOf(bytes.getBytes, bytes.getSizeInBytes), out)
  }
  override def read(in: DataInput): AnyRef = {
    val bytes = Extremes.read(in)
    val row = new UnsafeRow(updates.length)
    row.pointTo(bytes, bytes.length)
    mutable(row)
  }
}
