package penstock.kernel.engine

import java.io.{DataInput, DataOutput}
import java.math.{BigDecimal => JavaDecimal, BigInteger}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode
import org.apache.spark.sql.types._
import penstock.kernel.state.Entries

/** Counts rows in which no argument is NULL. One number. */
case class CountFold(arguments: Int) extends Fold {
  override def longs: Int = 1
  override def merges: Boolean = true
  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit = {
    var i = 0
    while (i < arguments) {
      if (row.isNullAt(input + i)) return
      i += 1
    }
    g.numbers(n) += weight
  }
  override def code(held: String, at: String, argument: Int => ExprCode): Option[String] =
    Some((0 until arguments).map(i => s"!${argument(i).isNull}").mkString(if (arguments == 0) "" else "if (", " && ", if (arguments == 0) "" else ") ") + s"$held[$at] += weight;")
  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit =
    buffer.setLong(at, g.numbers(n))
}

/** What a sum of whole numbers does when it does not fit: wraps around, becomes NULL, or is an error. */
sealed trait Overflow
object Overflow {
  case object Wraps extends Overflow
  case object IsNull extends Overflow
  case object IsError extends Overflow
  def of(mode: org.apache.spark.sql.catalyst.expressions.EvalMode.Value): Overflow = mode.toString match {
    case "LEGACY" => Wraps
    case "TRY" => IsNull
    case _ => IsError
  }
}

/** Adds up values that are whole numbers inside. Three numbers: how many were not NULL, and the sum in 128 bits, high and low. */
sealed abstract class WideSumFold extends Fold {
  def from: DataType
  override def longs: Int = 3
  override def merges: Boolean = true
  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit =
    if (!row.isNullAt(input)) {
      g.numbers(n) += weight
      Wide.add(g.numbers, n + 1, Numbers.whole(row, input, from), weight)
    }
  override def code(held: String, at: String, argument: Int => ExprCode): Option[String] =
    Some(s"if (!${argument(0).isNull}) { $held[$at] += weight; penstock.kernel.engine.Wide.add($held, $at + 1, ${argument(0).value}, weight); }")
  override def merge(g: Gathered, n: Int, o: Int, other: Gathered): Unit = {
    g.numbers(n) += other.numbers(n)
    Wide.addHalves(g.numbers, n + 1, other.numbers(n + 1), other.numbers(n + 2))
  }
}

/** Sums whole numbers. */
case class WholeSumFold(from: DataType, overflow: Overflow) extends WideSumFold {
  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit = {
    val low = g.numbers(n + 2)
    val fits = g.numbers(n + 1) == (low >> 63)
    if (g.numbers(n) == 0 || (!fits && overflow == Overflow.IsNull)) buffer.setNullAt(at)
    else if (!fits && overflow == Overflow.IsError) throw new ArithmeticException("a sum does not fit BIGINT")
    else buffer.setLong(at, low)
  }
}

/** Numbers of 128 bits, high half first, in an array. */
object Wide {
  def add(numbers: Array[Long], at: Int, value: Long, weight: Long): Unit = addHalves(numbers, at, Math.multiplyHigh(value, weight), value * weight)
  def addHalves(numbers: Array[Long], at: Int, high: Long, low: Long): Unit = {
    val sum = numbers(at + 1) + low
    numbers(at) += high + (if (java.lang.Long.compareUnsigned(sum, low) < 0) 1L else 0L)
    numbers(at + 1) = sum
  }
  /** The nearest double. */
  def double(numbers: Array[Long], at: Int): Double = {
    val (high, low) = (numbers(at), numbers(at + 1))
    if (high == (low >> 63)) low.toDouble else BigInteger.valueOf(high).shiftLeft(64).add(Numbers.unsigned(low)).doubleValue
  }
}

/** Sums decimals exactly. Three numbers: how many were not NULL, and the sum of the unscaled values in 128 bits, wide enough for 2^64 values of 18
  * digits; one object, the sum of longer ones.
  *
  * Spark's buffer is (sum, is empty) for `sum` and (sum, count) for `avg`; a sum that does not fit its type is NULL there.
  */
case class DecimalSumFold(from: DecimalType, sum: DecimalType, average: Boolean) extends Fold {
  override def longs: Int = 3
  override def objects: Int = if (small) 0 else 1
  override def merges: Boolean = true
  private def small = from.precision <= Decimal.MAX_LONG_DIGITS

  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit =
    if (!row.isNullAt(input)) {
      g.numbers(n) += weight
      if (small) Wide.add(g.numbers, n + 1, row.getLong(input), weight)
      else {
        val unscaled = row.getDecimal(input, from.precision, from.scale).toJavaBigDecimal.unscaledValue
        g.things(o) = held(g, o).add(unscaled.multiply(BigInteger.valueOf(weight)))
      }
    }
  override def merge(g: Gathered, n: Int, o: Int, other: Gathered): Unit = {
    g.numbers(n) += other.numbers(n)
    Wide.addHalves(g.numbers, n + 1, other.numbers(n + 1), other.numbers(n + 2))
    if (!small && other.things(o) != null) g.things(o) = held(g, o).add(other.things(o).asInstanceOf[BigInteger])
  }
  private def held(g: Gathered, o: Int): BigInteger = if (small || g.things(o) == null) BigInteger.ZERO else g.things(o).asInstanceOf[BigInteger]

  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit = {
    val total = BigInteger.valueOf(g.numbers(n + 1)).shiftLeft(64).add(Numbers.unsigned(g.numbers(n + 2))).add(held(g, o))
    val value = Decimal(new JavaDecimal(total, from.scale))
    val fits = value.changePrecision(sum.precision, sum.scale)
    buffer.update(at, if (fits) value else null)
    if (average) buffer.setLong(at + 1, g.numbers(n)) else buffer.setBoolean(at + 1, g.numbers(n) == 0)
  }
  override def write(thing: AnyRef, out: DataOutput): Unit = {
    val bytes = if (thing == null) Array.emptyByteArray else thing.asInstanceOf[BigInteger].toByteArray
    out.writeInt(bytes.length)
    out.write(bytes)
  }
  override def read(in: DataInput): AnyRef = {
    val bytes = new Array[Byte](in.readInt())
    in.readFully(bytes)
    if (bytes.isEmpty) null else new BigInteger(bytes)
  }
}

/** Sums doubles exactly, whatever the order, and rounds once. One number, how many were not NULL; one object, an `ExactSum`.
  *
  * Spark's buffer is (sum), or (sum, count) for `avg`, which also averages whole numbers as doubles.
  */
case class DoubleSumFold(from: DataType, average: Boolean) extends Fold {
  override def longs: Int = 1
  override def objects: Int = 1
  override def merges: Boolean = true
  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit =
    if (!row.isNullAt(input)) {
      g.numbers(n) += weight
      held(g, o).add(Numbers.double(row, input, from), weight)
    }
  override def merge(g: Gathered, n: Int, o: Int, other: Gathered): Unit = {
    g.numbers(n) += other.numbers(n)
    if (other.things(o) != null) held(g, o).add(other.things(o).asInstanceOf[ExactSum])
  }
  private def held(g: Gathered, o: Int): ExactSum = {
    if (g.things(o) == null) g.things(o) = new ExactSum
    g.things(o).asInstanceOf[ExactSum]
  }
  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit = {
    val empty = g.numbers(n) == 0
    if (empty && !average) buffer.setNullAt(at) else buffer.setDouble(at, if (empty) 0.0 else held(g, o).value)
    if (average) buffer.setLong(at + 1, g.numbers(n))
  }
  override def write(thing: AnyRef, out: DataOutput): Unit = (if (thing == null) new ExactSum else thing.asInstanceOf[ExactSum]).write(out)
  override def read(in: DataInput): AnyRef = ExactSum.read(in)
}

/** Averages whole numbers, which Spark adds up as doubles: exactly, whatever the order, and rounds once. Three numbers: how many were not NULL, and the
  * sum of the doubles in 128 bits; a double that was a whole number is one.
  */
case class WholeAverageFold(from: DataType) extends Fold {
  override def longs: Int = 3
  override def merges: Boolean = true
  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit =
    if (!row.isNullAt(input)) WholeAverageFold.take(g.numbers, n, Numbers.whole(row, input, from), weight)
  override def code(held: String, at: String, argument: Int => ExprCode): Option[String] =
    Some(s"if (!${argument(0).isNull}) penstock.kernel.engine.WholeAverageFold.take($held, $at, ${argument(0).value}, weight);")
  override def merge(g: Gathered, n: Int, o: Int, other: Gathered): Unit = {
    g.numbers(n) += other.numbers(n)
    Wide.addHalves(g.numbers, n + 1, other.numbers(n + 1), other.numbers(n + 2))
  }
  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit = {
    buffer.setDouble(at, Wide.double(g.numbers, n + 1))
    buffer.setLong(at + 1, g.numbers(n))
  }
}

object WholeAverageFold {
  /** 2^63: what the largest numbers become as doubles, and no number of 64 bits is. */
  private val Beyond = 9223372036854775808.0

  def take(numbers: Array[Long], n: Int, whole: Long, weight: Long): Unit = {
    numbers(n) += weight
    val value = whole.toDouble
    if (value < Beyond) Wide.add(numbers, n + 1, value.toLong, weight) else Wide.addHalves(numbers, n + 1, weight >> 1, weight << 63)
  }
}

/** Sums intervals: of days and times in microseconds, of years in months.
  *
  * Spark's buffer is (sum), or (sum, count) for `avg`; a sum that does not fit is an error, or NULL for `try_sum` and `try_avg`.
  */
case class IntervalSumFold(from: DataType, average: Boolean, overflow: Overflow) extends WideSumFold {
  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit = {
    val sum = g.numbers(n + 2)
    val months = from.isInstanceOf[YearMonthIntervalType]
    val fits = g.numbers(n + 1) == (sum >> 63) && (!months || sum == sum.toInt)
    if (!fits && overflow != Overflow.IsNull) throw new ArithmeticException("a sum of intervals does not fit")
    if (!fits || g.numbers(n) == 0 && !average) buffer.setNullAt(at)
    else if (months) buffer.setInt(at, sum.toInt)
    else buffer.setLong(at, sum)
    if (average) buffer.setLong(at + 1, g.numbers(n))
  }
}

/** Numbers of any of Spark's types, days and times too, read from a row. */
object Numbers {
  def whole(row: InternalRow, at: Int, from: DataType): Long = from match {
    case LongType | TimestampType | TimestampNTZType | _: DayTimeIntervalType => row.getLong(at)
    case IntegerType | DateType | _: YearMonthIntervalType => row.getInt(at)
    case ShortType => row.getShort(at)
    case ByteType => row.getByte(at)
  }
  def double(row: InternalRow, at: Int, from: DataType): Double = from match {
    case DoubleType => row.getDouble(at)
    case FloatType => row.getFloat(at)
    case other => whole(row, at, other).toDouble
  }
  def unsigned(value: Long): BigInteger = {
    val plain = BigInteger.valueOf(value)
    if (value < 0) plain.add(BigInteger.ONE.shiftLeft(64)) else plain
  }
}
