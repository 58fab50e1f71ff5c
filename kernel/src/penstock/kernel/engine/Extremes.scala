package penstock.kernel.engine

import java.io.{DataInput, DataOutput}
import java.util.Comparator
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Ascending, BoundReference, SortOrder, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.expressions.codegen.{ExprCode, GenerateOrdering}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform
import penstock.kernel.state.Entries

/** The order that Spark gives to values of a type, on rows of that one column; equal values that are written differently (-0.0 and 0.0)
  * are ordered by their bytes, so that the least and the largest do not depend on which came first.
  */
final class ValueOrder(valueType: DataType) extends Comparator[Array[Byte]] {
  private val ordering = GenerateOrdering.generate(Seq(SortOrder(BoundReference(0, valueType, nullable = true), Ascending)))
  private val left = new UnsafeRow(1)
  private val right = new UnsafeRow(1)
  override def compare(a: Array[Byte], b: Array[Byte]): Int = {
    left.pointTo(a, a.length)
    right.pointTo(b, b.length)
    val byValue = ordering.compare(left, right)
    if (byValue != 0) byValue else java.util.Arrays.compareUnsigned(a, b)
  }
}

/** One value as a row of one column, in bytes of its own. */
final class ValueBytes(at: Int, valueType: DataType) {
  private val projection = UnsafeProjection.create(Seq(BoundReference(at, valueType, nullable = true)))
  def apply(row: InternalRow): Array[Byte] = {
    val found = projection(row)
    java.util.Arrays.copyOf(found.getBytes, found.getSizeInBytes)
  }
}

/** The least or the largest value, where rows only come. One object: the value. */
case class GrowingExtreme(valueType: DataType, largest: Boolean) extends Fold {
  override def longs: Int = 0
  override def objects: Int = 1
  override def merges: Boolean = true
  @transient private lazy val order = new ValueOrder(valueType)
  @transient private lazy val held = new UnsafeRow(1)
  @transient private var bytesAt: ValueBytes = _

  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit =
    if (!row.isNullAt(input)) {
      if (bytesAt == null) bytesAt = new ValueBytes(input, valueType)
      better(g, o, bytesAt(row))
    }
  override def merge(g: Gathered, n: Int, o: Int, other: Gathered): Unit =
    if (other.things(o) != null) better(g, o, other.things(o).asInstanceOf[Array[Byte]])
  private def better(g: Gathered, o: Int, candidate: Array[Byte]): Unit = {
    val old = g.things(o).asInstanceOf[Array[Byte]]
    val compared = if (old == null) 0 else order.compare(candidate, old)
    if (old == null || (if (largest) compared > 0 else compared < 0)) g.things(o) = candidate
  }
  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit =
    Extremes.fill(g.things(o).asInstanceOf[Array[Byte]], held, valueType, buffer, at)
  override def write(thing: AnyRef, out: DataOutput): Unit = Extremes.write(thing.asInstanceOf[Array[Byte]], out)
  override def read(in: DataInput): AnyRef = Extremes.read(in)
}

/** The least or the largest whole number, day or time, where rows only come. Two numbers: whether there is a value, and the value. */
case class GrowingWholeExtreme(valueType: DataType, largest: Boolean) extends Fold {
  override def longs: Int = 2
  override def merges: Boolean = true

  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit =
    if (!row.isNullAt(input)) GrowingWholeExtreme.take(g.numbers, n, Numbers.whole(row, input, valueType), largest)
  override def code(held: String, at: String, argument: Int => ExprCode): Option[String] =
    Some(s"if (!${argument(0).isNull}) penstock.kernel.engine.GrowingWholeExtreme.take($held, $at, ${argument(0).value}, $largest);")
  override def merge(g: Gathered, n: Int, o: Int, other: Gathered): Unit =
    if (other.numbers(n) != 0) GrowingWholeExtreme.take(g.numbers, n, other.numbers(n + 1), largest)
  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit =
    if (g.numbers(n) == 0) buffer.setNullAt(at)
    else valueType match {
      case ByteType => buffer.setByte(at, g.numbers(n + 1).toByte)
      case ShortType => buffer.setShort(at, g.numbers(n + 1).toShort)
      case IntegerType | DateType => buffer.setInt(at, g.numbers(n + 1).toInt)
      case _ => buffer.setLong(at, g.numbers(n + 1))
    }
}

object GrowingWholeExtreme {
  def take(numbers: Array[Long], n: Int, value: Long, largest: Boolean): Unit =
    if (numbers(n) == 0 || (if (largest) value > numbers(n + 1) else value < numbers(n + 1))) {
      numbers(n) = 1
      numbers(n + 1) = value
    }
}

object GrowingExtreme {
  /** The fold for values of a type. */
  def of(valueType: DataType, largest: Boolean): Fold = valueType match {
    case ByteType | ShortType | IntegerType | LongType | DateType | TimestampType | TimestampNTZType => GrowingWholeExtreme(valueType, largest)
    case _ => GrowingExtreme(valueType, largest)
  }
}

/** The least or the largest value, where rows leave too: all values in order, with how often each is there.
  *
  * A change costs one step into the ordered collection, however large the group is.
  */
case class Extreme(valueType: DataType, largest: Boolean) extends Fold {
  override def longs: Int = 0
  override def merges: Boolean = false
  @transient override lazy val collections: Seq[Comparator[Array[Byte]]] = Seq(new ValueOrder(valueType))
  @transient private lazy val held = new UnsafeRow(1)
  @transient private var bytesAt: ValueBytes = _

  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit = ()
  override def keep(g: Gathered, n: Int, o: Int, entries: Array[Entries], row: UnsafeRow, input: Int, weight: Long, place: Long): Unit =
    if (!row.isNullAt(input)) {
      if (bytesAt == null) bytesAt = new ValueBytes(input, valueType)
      Multiset.add(entries(0), bytesAt(row), weight)
    }
  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit =
    Extremes.fill(if (largest) entries(0).lastKey else entries(0).firstKey, held, valueType, buffer, at)
}

object Extremes {
  def fill(value: Array[Byte], held: UnsafeRow, valueType: DataType, buffer: InternalRow, at: Int): Unit =
    if (value == null) buffer.setNullAt(at)
    else {
      held.pointTo(value, value.length)
      buffer.update(at, InternalRow.copyValue(held.get(0, valueType)))
    }
  def write(bytes: Array[Byte], out: DataOutput): Unit = {
    out.writeInt(if (bytes == null) -1 else bytes.length)
    if (bytes != null) out.write(bytes)
  }
  def read(in: DataInput): Array[Byte] = {
    val length = in.readInt()
    if (length < 0) null
    else {
      val bytes = new Array[Byte](length)
      in.readFully(bytes)
      bytes
    }
  }
}

/** A collection of values with how often each is there. */
object Multiset {
  def add(entries: Entries, value: Array[Byte], weight: Long): Unit = {
    val old = entries.get(value)
    val count = weight + (if (old == null) 0L else Platform.getLong(old, Platform.BYTE_ARRAY_OFFSET))
    if (count == 0) entries.remove(value)
    else {
      val bytes = new Array[Byte](8)
      Platform.putLong(bytes, Platform.BYTE_ARRAY_OFFSET, count)
      entries.put(value, bytes)
    }
  }
  def count(bytes: Array[Byte]): Long = Platform.getLong(bytes, Platform.BYTE_ARRAY_OFFSET)
}
