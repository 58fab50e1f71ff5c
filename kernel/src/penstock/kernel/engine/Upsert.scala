package penstock.kernel.engine

import java.util.Arrays
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BasePredicate, BoundReference, JoinedRow, Or, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.{DataType, IntegerType, LongType, StringType}
import penstock.kernel.state.State

/** A table with a key: the newest record of a key is its row.
  *
  * In: records of one key; weight +1 a row, -1 a deletion. Where both are at one place, the row counts.
  * State: the row, as the views need it; absent when deleted, or when no edge takes it.
  * Out: at most two changes per batch, or with `steps` per record; the retraction before the assertion.
  */
case class Upsert(id: Int, keyWidth: Int, width: Int, edges: Seq[Edge], steps: Option[TableSteps] = None) extends Operator {
  @transient private lazy val before = new UnsafeRow(width)
  @transient private lazy val after = new UnsafeRow(width)
  /** Whether any edge takes a row; null where one takes all, or what goes along depends on the record. */
  @transient private lazy val wanted: BasePredicate = {
    val conditions = edges.map(_.first)
    if (steps.isDefined || conditions.contains(None)) null else conditions.flatten.reduceOption(Or(_, _)).map(Route.predicate).orNull
  }
  @transient private lazy val told = steps.flatMap(_.told).map(new Told(_)).orNull

  override def run(key: UnsafeRow, rows: Rows, state: State, out: Output): Unit =
    if (steps.isEmpty) replace(newest(rows), state, out)
    else {
      rows.sortByStep(first = 0)
      var i = 0
      while (i < rows.size) {
        // The first at a place is the one that counts there.
        if (i == 0 || Envelope.place(rows(i)) != Envelope.place(rows(i - 1))) replace(rows(i), state, out)
        i += 1
      }
    }

  private def replace(last: Array[Byte], state: State, out: Output): Unit = {
    val old = state.value
    val row = if (!isThere(last)) null else if (told == null) Envelope.row(last) else told.own(last)
    if (!Arrays.equals(old, row)) {
      emit(old, before, -1, last, out)
      emit(row, after, 1, last, out)
      state.value = row
    }
  }

  private def isThere(record: Array[Byte]): Boolean = Envelope.weight(record) > 0 && (wanted == null || wanted.eval(Envelope.read(record, after)))

  private def emit(bytes: Array[Byte], as: UnsafeRow, weight: Long, last: Array[Byte], out: Output): Unit = if (bytes != null) {
    as.pointTo(bytes, bytes.length)
    out.emit(if (told == null) as else told.of(as, last), weight, Envelope.stamp(last), Envelope.place(last))
  }

  private def newest(rows: Rows): Array[Byte] = {
    var found = rows(0)
    var i = 1
    while (i < rows.size) {
      val byPlace = java.lang.Long.compare(Envelope.place(rows(i)), Envelope.place(found))
      if (byPlace > 0 || byPlace == 0 && Envelope.weight(rows(i)) > 0) found = rows(i)
      i += 1
    }
    found
  }
}

/** Every record of a table says what it changes.
  *
  * @param told where each change goes on with the record that makes it, the types of the row's own columns: behind them stand in every record its
  * partition, its offset, and itself as JSON, and so they do in every change
  */
case class TableSteps(told: Option[Seq[DataType]])

/** Takes records and rows apart, and together. */
private final class Told(types: Seq[DataType]) {
  private val whole = new UnsafeRow(types.length + TableSteps.Record.length)
  private val first = UnsafeProjection.create(types.zipWithIndex.map { case (of, i) => BoundReference(i, of, nullable = true) })
  private val rest = UnsafeProjection.create(TableSteps.Record.zipWithIndex.map { case (of, i) => BoundReference(types.length + i, of, nullable = true) })
  private val both = new JoinedRow()

  def own(envelope: Array[Byte]): Array[Byte] = first(Envelope.read(envelope, whole)).copy().getBytes
  def of(row: UnsafeRow, envelope: Array[Byte]): InternalRow = both(row, rest(Envelope.read(envelope, whole)))
}

object TableSteps {
  val Record: Seq[DataType] = Seq(IntegerType, LongType, StringType)
}
