package penstock.kernel.engine

import java.io.{DataInput, DataOutput}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Ascending, BaseOrdering, BoundReference, SortOrder, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateOrdering
import org.apache.spark.sql.types.DataType
import penstock.kernel.state.Entries

/** The `nth` value of a frame, counted from its first row or from its last, NULLs left out or not.
  *
  * One object: the `nth` values at that end, in the frame's order. Fills two columns: the value, and whether there is one.
  */
case class PickFold(valueType: DataType, nth: Int, fromLast: Boolean, ignoreNulls: Boolean) extends Fold {
  override def longs: Int = 0
  override def objects: Int = 1
  override def merges: Boolean = true
  @transient private lazy val held = new UnsafeRow(1)
  @transient private var bytesAt: ValueBytes = _

  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit =
    if ((!ignoreNulls || !row.isNullAt(input)) && (fromLast || of(g, o).length < nth)) {
      if (bytesAt == null) bytesAt = new ValueBytes(input, valueType)
      g.things(o) = ends(of(g, o), Array.fill(math.min(weight, nth.toLong).toInt)(bytesAt(row)))
    }
  override def merge(g: Gathered, n: Int, o: Int, other: Gathered): Unit = g.things(o) = ends(of(g, o), of(other, o))

  private def of(g: Gathered, o: Int): Array[Array[Byte]] =
    if (g.things(o) == null) PickFold.None else g.things(o).asInstanceOf[Array[Array[Byte]]]
  private def ends(first: Array[Array[Byte]], second: Array[Array[Byte]]): Array[Array[Byte]] =
    if (fromLast) (first ++ second).takeRight(nth) else (first ++ second).take(nth)

  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit = {
    val values = of(g, o)
    val found = values.length == nth
    Extremes.fill(if (!found) null else if (fromLast) values.head else values.last, held, valueType, buffer, at)
    buffer.setBoolean(at + 1, found)
  }
  override def write(thing: AnyRef, out: DataOutput): Unit = {
    val values = if (thing == null) PickFold.None else thing.asInstanceOf[Array[Array[Byte]]]
    out.writeInt(values.length)
    values.foreach(Extremes.write(_, out))
  }
  override def read(in: DataInput): AnyRef = Array.fill(in.readInt())(Extremes.read(in))
}

object PickFold {
  private val None = Array.empty[Array[Byte]]
}

/** Counts the groups of rows that follow each other with equal arguments: `dense_rank`, where the arguments are what the rows are ordered by.
  *
  * One number; one object, the last arguments.
  */
case class GroupsFold(types: Seq[DataType]) extends Fold {
  override def longs: Int = 1
  override def objects: Int = 1
  override def merges: Boolean = false
  @transient private lazy val ordering: BaseOrdering =
    GenerateOrdering.generate(types.zipWithIndex.map { case (each, i) => SortOrder(BoundReference(i, each, nullable = true), Ascending) })
  @transient private lazy val last = new UnsafeRow(types.length)
  @transient private var projection: UnsafeProjection = _

  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit = {
    if (projection == null) projection = UnsafeProjection.create(types.zipWithIndex.map { case (each, i) => BoundReference(input + i, each, nullable = true) })
    val arguments = projection(row)
    if (!isLast(g.things(o).asInstanceOf[Array[Byte]], arguments)) {
      g.numbers(n) += 1
      g.things(o) = java.util.Arrays.copyOf(arguments.getBytes, arguments.getSizeInBytes)
    }
  }
  private def isLast(bytes: Array[Byte], arguments: UnsafeRow): Boolean = bytes != null && {
    last.pointTo(bytes, bytes.length)
    ordering.compare(last, arguments) == 0
  }
  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit = buffer.setLong(at, g.numbers(n))
  override def write(thing: AnyRef, out: DataOutput): Unit = Extremes.write(thing.asInstanceOf[Array[Byte]], out)
  override def read(in: DataInput): AnyRef = Extremes.read(in)
}
