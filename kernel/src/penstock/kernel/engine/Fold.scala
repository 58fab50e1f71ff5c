package penstock.kernel.engine

import java.io.{DataInput, DataOutput}
import java.util.Comparator
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode
import penstock.kernel.state.Entries

/** What the folds of one key have gathered: numbers, and where numbers do not suffice, objects. */
final class Gathered(var numbers: Array[Long], var things: Array[AnyRef]) {
  /** How many values the objects have, of those that have many. */
  var values = 0L

  def this(longs: Int, objects: Int) = this(new Array[Long](longs), new Array[AnyRef](objects))
}

/** One aggregate function of an aggregate, kept under changes.
  *
  * Gathers the rows of a key, each with its weight (+1 appeared, -1 left), in any order, and gives what Spark's own function
  * would have in its buffer after those rows; Spark's expressions then make the result from the buffer.
  * `input` is where the function's arguments begin in the row; the argument after them, if `filtered`, says whether the row counts.
  */
abstract class Fold extends Serializable {
  /** How many numbers and objects it needs of `Gathered`, and where its own begin. */
  def longs: Int
  def objects: Int = 0
  /** How many ordered collections of the key's state it needs, with their orders. */
  def collections: Seq[Comparator[Array[Byte]]] = Nil
  /** Whether what two gathered apart can be put together: then the combiner may gather before the shuffle. */
  def merges: Boolean
  /** Whether what it gathers grows with the rows, and is not to be kept with each of them. */
  def grows: Boolean = false

  def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit
  /** The same in Java, for a fold that has numbers only: they are elements of `held` from `at` on; `argument` has the values, `weight` is at hand. */
  def code(held: String, at: String, argument: Int => ExprCode): Option[String] = None
  def merge(g: Gathered, n: Int, o: Int, other: Gathered): Unit = {
    var i = n
    while (i < n + longs) {
      g.numbers(i) += other.numbers(i)
      i += 1
    }
  }
  /** Puts what was gathered on the way, and is not to stay there, into its collections. */
  def settle(g: Gathered, n: Int, o: Int, entries: Array[Entries]): Unit = ()
  /** Writes Spark's buffer. `entries` are its collections. */
  def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit

  def write(thing: AnyRef, out: DataOutput): Unit = throw new IllegalStateException("a fold without objects has nothing to write")
  def read(in: DataInput): AnyRef = throw new IllegalStateException("a fold without objects has nothing to read")
  /** For folds that keep rows in collections: what `add` cannot do with numbers alone. The rows come ordered by place, then bytes. */
  def keep(g: Gathered, n: Int, o: Int, entries: Array[Entries], row: UnsafeRow, input: Int, weight: Long, place: Long): Unit = ()
}
