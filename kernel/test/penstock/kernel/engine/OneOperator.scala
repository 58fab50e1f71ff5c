package penstock.kernel.engine

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, ObjectInputStream, ObjectOutputStream}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types.{ArrayType, DataType}
import penstock.kernel.Checks.holds
import penstock.kernel.state.{Key, MapStore, Slot}
import scala.collection.mutable.ArrayBuffer

/** One operator at work on one key, batch by batch, and all that it gave out.
  *
  * `made` makes it from the edges that it is given; it reaches its work as it reaches an executor, serialized.
  */
final class OneOperator[T <: Operator](input: Seq[DataType], output: Seq[DataType], limit: Int, made: Seq[Edge] => T) {
  private val everything = Edge(Target(9, 0, 9), None, Nil, output.zipWithIndex.map { case (each, i) => BoundReference(i, each, nullable = true) })
  var operator: T = OneOperator.sent(made(Seq(everything)))
  private val routes = Array(new Route(everything))
  private val unsafe = UnsafeProjection.create(input.toArray)
  private val nothing = FeedIterator.Nothing
  private val shown = new UnsafeRow(output.length)
  val store = new MapStore
  /** The envelopes of the last batch. */
  val sent = ArrayBuffer.empty[Array[Byte]]

  def envelope(row: Seq[Any], weight: Long, place: Long): Array[Byte] =
    Envelope.stamped(Envelope.of(Target(operator.id, 0, 0), Envelope.Row, nothing, unsafe(InternalRow.fromSeq(row))), weight, place / 2, place)

  /** Makes everything anew but the pages. */
  def restart(): Unit = operator = OneOperator.sent(made(Seq(everything)))

  /** What the batch changed: for each row of the answer how often it came or, negative, left. */
  def batch(envelopes: Iterable[Array[Byte]]): Map[Seq[Any], Long] = {
    val rows = new Rows
    envelopes.foreach(envelope => rows.add(envelope.clone))
    sent.clear()
    val slot = new Slot(store.begin(), limit, operator.orders, operator.sums)
    operator.run(nothing, rows, slot.state(new Key(Array.emptyByteArray, 0, 0, 0L)), new Output(routes, envelope => sent += envelope))
    slot.close()
    val changes = sent.map(envelope => decoded(envelope) -> Envelope.weight(envelope)).toSeq
    holds(changes.map(_._1).distinct.length == changes.length, s"a row is given out twice: $changes")
    changes.toMap
  }

  private def decoded(envelope: Array[Byte]): Seq[Any] = {
    Envelope.read(envelope, shown)
    output.zipWithIndex.map { case (each, i) => OneOperator.plain(shown.get(i, each), each) }
  }
}

object OneOperator {
  def sent[T](thing: T): T = {
    val bytes = new ByteArrayOutputStream()
    new ObjectOutputStream(bytes).writeObject(thing)
    new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray)).readObject().asInstanceOf[T]
  }

  private def plain(value: Any, of: DataType): Any = (value, of) match {
    case (array: ArrayData, ArrayType(element, _)) => array.toSeq[Any](element)
    case _ => value
  }

  /** `now` less `before`. */
  def difference(before: Map[Seq[Any], Long], now: Map[Seq[Any], Long]): Map[Seq[Any], Long] =
    (before.keySet ++ now.keySet).toSeq.map(row => row -> (now.getOrElse(row, 0L) - before.getOrElse(row, 0L))).filter(_._2 != 0).toMap
}
