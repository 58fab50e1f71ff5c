package penstock.kernel.engine

import java.util.{Arrays, HashMap => JavaMap}
import java.util.Map.{Entry => Weighted}
import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.Platform

/** Where rows leave the graph: a view or the dead letters. Its number, its columns, and which of them are its key (none: a bag of rows).
  *
  * `by` are the values of the key, so that those which Spark calls equal have equal bytes.
  */
case class Sink(id: Int, name: String, schema: StructType, key: Seq[Int], by: Seq[Expression])

/** One change of a sink: the row that appeared and the row that left, either may be missing. `times` is more than one only in bags.
  *
  * `under` is the row's key, or in a bag the row itself.
  */
final class Change(val under: Bytes, val after: Array[Byte], val before: Array[Byte], val times: Long)

/** What a batch changed in one sink, consolidated: no row occurs with both signs.
  *
  * Rows of a sink with a key are paired: the row that left under a key and the one that appeared under it are one change.
  * The order is that of `under`, so that the same batch gives the same changes however its rows arrived.
  */
final class Changes(sink: Sink) {
  private val weights = new JavaMap[Bytes, Array[Long]]()

  def add(envelope: Array[Byte]): Unit = {
    val row = Bytes.ofRow(envelope)
    val held = weights.get(row)
    if (held == null) weights.put(row, Array(Envelope.weight(envelope)))
    else held(0) += Envelope.weight(envelope)
  }

  def consolidated(): Array[Change] = {
    val rows = weights.entrySet.toArray(new Array[Weighted[Bytes, Array[Long]]](0)).filter(_.getValue()(0) != 0)
    val changes = if (sink.key.isEmpty) rows.map(bagChange) else paired(rows)
    Arrays.sort(changes, (a: Change, b: Change) => a.under.compareTo(b.under))
    changes
  }

  private def bagChange(entry: Weighted[Bytes, Array[Long]]): Change = {
    val weight = entry.getValue()(0)
    val row = entry.getKey
    if (weight > 0) new Change(row, row.bytes, null, weight) else new Change(row, null, row.bytes, -weight)
  }

  private def paired(rows: Array[Weighted[Bytes, Array[Long]]]): Array[Change] = {
    val keyOf = new KeyOf(sink)
    val changes = new JavaMap[Bytes, Change](rows.length * 2)
    rows.foreach { entry =>
      val weight = entry.getValue()(0)
      val row = entry.getKey.bytes
      val key = keyOf(row)
      val held = changes.get(key)
      val doubled = math.abs(weight) != 1 || (held != null && (if (weight > 0) held.after != null else held.before != null))
      if (doubled) throw new IllegalStateException(s"the changes of ${sink.name} do not fit its key")
      val (after, before) = if (held == null) (null, null) else (held.after, held.before)
      changes.put(key, if (weight > 0) new Change(key, row, before, 1) else new Change(key, after, row, 1))
    }
    changes.values.toArray(new Array[Change](0))
  }
}

/** Bytes that can be a key of a map, and sorted: by their hash, so that any number of tasks can share the work evenly, each a range
  * of it; those with the same hash by the bytes.
  */
final class Bytes(val bytes: Array[Byte]) extends Comparable[Bytes] {
  private val hash = Envelope.hashOf(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length)
  override def hashCode: Int = hash.toInt
  override def equals(other: Any): Boolean = Arrays.equals(bytes, other.asInstanceOf[Bytes].bytes)
  override def compareTo(other: Bytes): Int = {
    val byHash = java.lang.Long.compareUnsigned(hash, other.hash)
    if (byHash != 0) byHash else Arrays.compareUnsigned(bytes, other.bytes)
  }
  /** Which of `2^bits` ranges they fall into. */
  def range(bits: Int): Int = if (bits == 0) 0 else (hash >>> (64 - bits)).toInt
}

object Bytes {
  def ofRow(envelope: Array[Byte]): Bytes = new Bytes(Envelope.row(envelope))
}

/** The key of a sink's row; the row itself where there is none. */
final class KeyOf(sink: Sink) {
  private val row = new UnsafeRow(sink.schema.length)
  private val projection = UnsafeProjection.create(sink.by)
  def apply(bytes: Array[Byte]): Bytes = if (sink.by.isEmpty) new Bytes(bytes) else {
    row.pointTo(bytes, bytes.length)
    val key = projection(row)
    new Bytes(Arrays.copyOf(key.getBytes, key.getSizeInBytes))
  }
}
