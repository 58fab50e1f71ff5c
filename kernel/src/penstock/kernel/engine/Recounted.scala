package penstock.kernel.engine

import java.util.Comparator
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression, Literal, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.{DataType, NullType}
import org.apache.spark.unsafe.Platform
import penstock.kernel.state.Entries

/** The arguments of a function in the row of an aggregate: `types` from column `at` on; `width` is that of the row. */
case class Arguments(at: Int, types: Seq[DataType], width: Int) {
  @transient private lazy val out = UnsafeProjection.create(types.zipWithIndex.map { case (t, i) => BoundReference(at + i, t, nullable = true) })
  @transient private lazy val back = UnsafeProjection.create(Seq.tabulate[Expression](width) { i =>
    if (i >= at && i < at + types.length) BoundReference(i - at, types(i - at), nullable = true) else Literal(null, NullType)
  })
  @transient private lazy val held = new UnsafeRow(types.length)

  /** As a row of their own; the next one takes its place. */
  def in(row: UnsafeRow): UnsafeRow = out(row)
  /** As a row of their own. */
  def of(row: UnsafeRow): Array[Byte] = {
    val found = in(row)
    java.util.Arrays.copyOf(found.getBytes, found.getSizeInBytes)
  }
  /** Back at their columns, as the function reads them. */
  def row(bytes: Array[Byte], start: Int): UnsafeRow = {
    held.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET + start, bytes.length - start)
    back(held)
  }
}

/** A fold that cannot take rows back, or that would grow with them: the group's rows are kept, and gathered again for every answer.
  *
  * State: collection 0 (place, arguments) -> how often; where rows leave, 1 (arguments, place): one that does takes away the oldest that equals it. The
  * work is as long as the group.
  */
case class RecountedFold(inner: Fold, arguments: Arguments, growing: Boolean) extends Fold {
  override def longs: Int = 0
  override def merges: Boolean = false
  override def collections: Seq[Comparator[Array[Byte]]] = if (growing) Seq(Operator.Bytes) else Seq(Operator.Bytes, Operator.Bytes)
  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit = ()
  override def keep(g: Gathered, n: Int, o: Int, entries: Array[Entries], row: UnsafeRow, input: Int, weight: Long, place: Long): Unit =
    if (growing) Oldest.add(entries(0), arguments.of(row), place, weight) else Oldest.change(entries, arguments.of(row), place, weight)
  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit = {
    val gathered = new Gathered(inner.longs, inner.objects)
    val cursor = entries(0).ascending
    while (cursor.next()) inner.add(gathered, 0, 0, arguments.row(cursor.key, 8), arguments.at, Multiset.count(cursor.value))
    inner.fill(gathered, 0, 0, Array.empty, buffer, at)
  }
}

/** A fold over distinct values that can take rows back: a value counts from the first row that has it to the last.
  *
  * State: the inner fold's numbers and objects; a collection, value -> how often.
  */
case class DistinctFold(inner: Fold, arguments: Arguments) extends Fold {
  override def longs: Int = inner.longs
  override def objects: Int = inner.objects
  override def merges: Boolean = false
  override def collections: Seq[Comparator[Array[Byte]]] = Seq(Operator.Bytes)
  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit = ()
  override def keep(g: Gathered, n: Int, o: Int, entries: Array[Entries], row: UnsafeRow, input: Int, weight: Long, place: Long): Unit = {
    val value = arguments.of(row)
    val before = entries(0).get(value) != null
    Multiset.add(entries(0), value, weight)
    val after = entries(0).get(value) != null
    if (before != after) inner.add(g, n, o, row, input, if (after) 1 else -1)
  }
  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit =
    inner.fill(g, n, o, Array.empty, buffer, at)
  override def write(thing: AnyRef, out: java.io.DataOutput): Unit = inner.write(thing, out)
  override def read(in: java.io.DataInput): AnyRef = inner.read(in)
}

/** A fold over distinct values where rows only come: those that one task meets are put together before the shuffle, each once.
  *
  * State: the inner fold's numbers; a collection of the values. On the way: the values of this batch.
  *
  * @param inner has no objects
  */
case class GrowingDistinctFold(inner: Fold, arguments: Arguments) extends Fold {
  override def longs: Int = inner.longs
  override def objects: Int = 1
  override def merges: Boolean = true
  override def collections: Seq[Comparator[Array[Byte]]] = Seq(Operator.Bytes)
  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit = {
    if (g.things(o) == null) g.things(o) = new ValueSet
    val value = arguments.in(row)
    if (g.things(o).asInstanceOf[ValueSet].add(value.getBaseObject, value.getBaseOffset, value.getSizeInBytes)) g.values += 1
  }
  override def merge(g: Gathered, n: Int, o: Int, other: Gathered): Unit = {
    super.merge(g, n, o, other)
    if (g.things(o) == null) g.things(o) = other.things(o)
    else if (other.things(o) != null) g.things(o).asInstanceOf[ValueSet].addAll(other.things(o).asInstanceOf[ValueSet])
  }
  override def settle(g: Gathered, n: Int, o: Int, entries: Array[Entries]): Unit = if (g.things(o) != null) {
    g.things(o).asInstanceOf[ValueSet].sorted.foreach { value =>
      if (entries(0).get(value) == null) {
        entries(0).put(value, GrowingDistinctFold.Present)
        inner.add(g, n, o, arguments.row(value, 0), arguments.at, 1)
      }
    }
    g.things(o) = null
  }
  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit = inner.fill(g, n, o, Array.empty, buffer, at)
  override def write(thing: AnyRef, out: java.io.DataOutput): Unit = {
    out.writeBoolean(thing != null)
    if (thing != null) thing.asInstanceOf[ValueSet].write(out)
  }
  override def read(in: java.io.DataInput): AnyRef = if (in.readBoolean()) ValueSet.read(in) else null
}

object GrowingDistinctFold {
  private val Present = Array.emptyByteArray
}

/** A fold that cannot take rows back and whose answer is a matter of the values alone: they are kept and gathered again for every answer, in the order
  * of their bytes. Where `distinct`, each once; otherwise as often as it is there.
  *
  * State: a collection, arguments -> how often. The work is as long as there are values.
  */
case class RecountedValuesFold(inner: Fold, arguments: Arguments, distinct: Boolean) extends Fold {
  override def longs: Int = 0
  override def merges: Boolean = false
  override def collections: Seq[Comparator[Array[Byte]]] = Seq(Operator.Bytes)
  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit = ()
  override def keep(g: Gathered, n: Int, o: Int, entries: Array[Entries], row: UnsafeRow, input: Int, weight: Long, place: Long): Unit =
    Multiset.add(entries(0), arguments.of(row), weight)
  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit = {
    val gathered = new Gathered(inner.longs, inner.objects)
    val cursor = entries(0).ascending
    while (cursor.next()) inner.add(gathered, 0, 0, arguments.row(cursor.key, 0), arguments.at, if (distinct) 1 else Multiset.count(cursor.value))
    inner.fill(gathered, 0, 0, Array.empty, buffer, at)
  }
}
