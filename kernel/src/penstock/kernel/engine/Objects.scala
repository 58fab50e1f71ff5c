package penstock.kernel.engine

import java.io.{DataInput, DataOutput}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateFunction, Collect, TypedAggregateWithHashMapAsBuffer, TypedImperativeAggregate}
import penstock.kernel.state.Entries
import scala.collection.mutable.ArrayBuffer

/** Any aggregate function of Spark that works on an object (sketches, percentiles, ...), over rows that are all at hand. `function` is bound to the row.
  *
  * As in a batch of Spark's, the object is written down, read back and put together with an empty one before the answer is taken from it: many a
  * sketch is another one after that. One object, which is never written to the state.
  */
case class ObjectFold(function: TypedImperativeAggregate[AnyRef]) extends Fold {
  override def longs: Int = 0
  override def objects: Int = 1
  override def merges: Boolean = false

  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit = {
    var thing = if (g.things(o) == null) function.createAggregationBuffer() else g.things(o)
    var i = 0L
    while (i < weight) {
      thing = function.update(thing, row)
      i += 1
    }
    g.things(o) = thing
  }
  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit =
    buffer.update(at, function.eval(together(null, g.things(o))))

  /** What was written down before, and then an object for further rows, as one; either may be missing. */
  def together(before: Array[Byte], since: AnyRef): AnyRef = {
    val none = function.createAggregationBuffer()
    val first = if (before == null) none else function.merge(none, function.deserialize(before))
    if (since == null) first else function.merge(first, function.deserialize(written(since)))
  }
  /** Some functions give the bytes of a row that they use again, and objects whose values lie in the bytes that they were read from. */
  def written(thing: AnyRef): Array[Byte] = function.serialize(thing).clone()
}

/** What an aggregate function of Spark's has gathered: `before` as it was written down, and the rows that came since then, which weigh `bytes`. */
private final class Grown(var before: Array[Byte]) {
  val rows = new ArrayBuffer[Array[Byte]]()
  var bytes = 0
  def take(row: Array[Byte]): Unit = {
    rows += row
    bytes += row.length
  }
}

/** A function that works on an object, where rows only come.
  *
  * Functions promise that objects can be put together, but not that one which was read back takes further rows, nor that it makes no difference
  * where an object ends and the next begins. So that is a matter of the rows alone, wherever batches are cut: rows are put aside until they
  * weigh a quarter of what was gathered before them. One object: what was gathered, and the rows put aside.
  */
case class GrowingFold(inner: ObjectFold, arguments: Arguments) extends Fold {
  override def longs: Int = 0
  override def objects: Int = 1
  override def merges: Boolean = false
  override def grows: Boolean = GrowingFold.hasValues(inner.function)

  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit = {
    if (g.things(o) == null) g.things(o) = new Grown(null)
    val held = g.things(o).asInstanceOf[Grown]
    val mine = arguments.of(row)
    var i = 0L
    while (i < weight) {
      held.take(mine)
      if (held.bytes >= GrowingFold.enough(held.before)) gather(held)
      i += 1
    }
  }
  private def gather(held: Grown): Unit = {
    held.before = inner.written(whole(held))
    held.rows.clear()
    held.bytes = 0
  }
  private def whole(thing: AnyRef): AnyRef = thing match {
    case held: Grown => inner.together(held.before, since(held))
    case _ => inner.together(null, null)
  }
  private def since(held: Grown): AnyRef = {
    val gathered = new Gathered(0, 1)
    held.rows.foreach(each => inner.add(gathered, 0, 0, arguments.row(each, 0), arguments.at, 1))
    gathered.things(0)
  }
  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit =
    buffer.update(at, inner.function.eval(whole(g.things(o))))

  override def write(thing: AnyRef, out: DataOutput): Unit = {
    val held = if (thing == null) new Grown(null) else thing.asInstanceOf[Grown]
    Extremes.write(held.before, out)
    out.writeInt(held.rows.length)
    held.rows.foreach(Extremes.write(_, out))
  }
  override def read(in: DataInput): AnyRef = {
    val held = new Grown(Extremes.read(in))
    var left = in.readInt()
    while (left > 0) {
      held.take(Extremes.read(in))
      left -= 1
    }
    held
  }
}

object GrowingFold {
  /** Whether the function's object has all values that it was given: those of sketches have a limit. */
  def hasValues(function: AggregateFunction): Boolean = function match {
    case _: TypedAggregateWithHashMapAsBuffer | _: Collect[_] => true
    case _ => false
  }
  private def enough(before: Array[Byte]): Int = if (before == null) 1024 else math.max(1024, before.length / 4)
}
