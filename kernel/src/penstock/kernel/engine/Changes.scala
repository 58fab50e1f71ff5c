package penstock.kernel.engine

import java.util.{Arrays, HashMap => JavaMap}
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.Platform

/** A view as the sink knows it: its number, its columns, and which of them are its key (none: a bag of rows). */
case class ViewSpec(id: Int, name: String, schema: StructType, key: Seq[Int])

/** One change of a view: the row that appeared and the row that left, either may be missing. `times` is more than one only in bags. */
final class Change(val after: Array[Byte], val before: Array[Byte], val times: Long)

/** What a batch changed in one view, consolidated: no row occurs with both signs.
  *
  * Rows of a view with a key are paired: the row that left under a key and the one that appeared under it are one change.
  * The order is that of the rows' bytes, so that the same batch gives the same changes however its rows arrived.
  */
final class Changes(view: ViewSpec) {
  private val weights = new JavaMap[Bytes, Array[Long]]()

  def add(envelope: Array[Byte]): Unit = {
    val row = new Bytes(Arrays.copyOfRange(envelope, Envelope.rowStart(envelope), envelope.length))
    val held = weights.get(row)
    if (held == null) weights.put(row, Array(Envelope.weight(envelope)))
    else held(0) += Envelope.weight(envelope)
  }

  def consolidated(): Array[Change] = {
    val rows = weights.entrySet.toArray(new Array[java.util.Map.Entry[Bytes, Array[Long]]](0)).filter(_.getValue()(0) != 0)
    Arrays.sort(rows, (a: java.util.Map.Entry[Bytes, Array[Long]], b: java.util.Map.Entry[Bytes, Array[Long]]) => a.getKey.compareTo(b.getKey))
    if (view.key.isEmpty) rows.map(bagChange) else paired(rows)
  }

  private def bagChange(entry: java.util.Map.Entry[Bytes, Array[Long]]): Change = {
    val weight = entry.getValue()(0)
    val bytes = entry.getKey.bytes
    if (weight > 0) new Change(bytes, null, weight) else new Change(null, bytes, -weight)
  }

  private def paired(rows: Array[java.util.Map.Entry[Bytes, Array[Long]]]): Array[Change] = {
    val keyOf = new KeyOf(view)
    val changes = new java.util.LinkedHashMap[Bytes, Change]()
    rows.foreach { entry =>
      val weight = entry.getValue()(0)
      val bytes = entry.getKey.bytes
      val key = keyOf(bytes)
      val held = changes.get(key)
      val doubled = math.abs(weight) != 1 || (held != null && (if (weight > 0) held.after != null else held.before != null))
      if (doubled) throw new DoubledKey(view.name, keyOf.shown(bytes))
      val (after, before) = if (held == null) (null, null) else (held.after, held.before)
      changes.put(key, if (weight > 0) new Change(bytes, before, 1) else new Change(after, bytes, 1))
    }
    changes.values.toArray(new Array[Change](0))
  }
}

/** Two rows under one key of a view. */
final class DoubledKey(val view: String, val key: String) extends RuntimeException(s"view $view has two rows under the key $key")

/** Bytes that can be a key of a map, and sorted. */
final class Bytes(val bytes: Array[Byte]) extends Comparable[Bytes] {
  override def hashCode: Int = Arrays.hashCode(bytes)
  override def equals(other: Any): Boolean = Arrays.equals(bytes, other.asInstanceOf[Bytes].bytes)
  override def compareTo(other: Bytes): Int = Arrays.compareUnsigned(bytes, other.bytes)
}

/** The key of a view's row. */
final class KeyOf(view: ViewSpec) {
  private val row = new UnsafeRow(view.schema.length)
  private val columns = view.key.map(i => BoundReference(i, view.schema(i).dataType, view.schema(i).nullable))
  private val projection = UnsafeProjection.create(columns)
  def apply(bytes: Array[Byte]): Bytes = {
    row.pointTo(bytes, bytes.length)
    val key = projection(row)
    new Bytes(Arrays.copyOf(key.getBytes, key.getSizeInBytes))
  }
  def shown(bytes: Array[Byte]): String = {
    row.pointTo(bytes, bytes.length)
    view.key.map(i => s"${view.schema(i).name} = ${row.get(i, view.schema(i).dataType)}").mkString(", ")
  }
}

/** Envelopes packed one after the other, so that a task's result is one array: `[length 4][envelope]...` */
object Packed {
  def pack(envelopes: Iterator[Array[Byte]]): Array[Byte] = {
    val out = new java.io.ByteArrayOutputStream(4096)
    val length = new Array[Byte](4)
    while (envelopes.hasNext) {
      val each = envelopes.next()
      Platform.putInt(length, Platform.BYTE_ARRAY_OFFSET, each.length)
      out.write(length)
      out.write(each)
    }
    out.toByteArray
  }
  def each(packed: Array[Byte])(action: Array[Byte] => Unit): Unit = {
    var at = 0
    while (at < packed.length) {
      val length = Platform.getInt(packed, Platform.BYTE_ARRAY_OFFSET + at)
      action(Arrays.copyOfRange(packed, at + 4, at + 4 + length))
      at += 4 + length
    }
  }
}
