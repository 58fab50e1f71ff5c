package penstock.kernel.engine

import java.io.{DataInput, DataOutput}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
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

/** What an aggregate function of Spark's has gathered: `before` as it was written down, `since` an object for the rows that came since then.
  *
  * Functions promise that objects can be put together, but not that one which was read back takes further rows.
  */
private final class Grown(val before: Array[Byte]) {
  var since: AnyRef = _
}

/** Any aggregate function of Spark that works on an object (sketches, percentiles, ...), where rows only come. `function` is bound to the row.
  *
  * One object: what was gathered.
  */
case class ObjectFold(function: TypedImperativeAggregate[AnyRef]) extends Fold {
  override def longs: Int = 0
  override def objects: Int = 1
  override def merges: Boolean = false

  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit = {
    if (g.things(o) == null) g.things(o) = new Grown(null)
    val held = g.things(o).asInstanceOf[Grown]
    if (held.since == null) held.since = function.createAggregationBuffer()
    var i = 0L
    while (i < weight) {
      held.since = function.update(held.since, row)
      i += 1
    }
  }
  private def whole(thing: AnyRef): AnyRef = thing match {
    case null => function.createAggregationBuffer()
    case held: Grown if held.before == null => held.since
    case held: Grown =>
      val all = function.merge(function.createAggregationBuffer(), function.deserialize(held.before))
      if (held.since == null) all else function.merge(all, function.deserialize(function.serialize(held.since)))
  }
  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit =
    buffer.update(at, function.eval(whole(g.things(o))))
  override def write(thing: AnyRef, out: DataOutput): Unit = Extremes.write(
    thing match {
      case null => null
      case held: Grown if held.since == null => held.before
      case held => function.serialize(whole(held))
    },
    out)
  override def read(in: DataInput): AnyRef = {
    val bytes = Extremes.read(in)
    if (bytes == null) null else new Grown(bytes)
  }
}
