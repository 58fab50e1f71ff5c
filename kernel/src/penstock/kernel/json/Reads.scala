package penstock.kernel.json

import java.util.Base64

import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.types._

/** Reads the values of one type into a column; `column` is null where they are only checked.
  *
  * What is read and what is refused, and with which words, is that of `src/penstock/text.py`.
  */
abstract class Reads(val wanted: String, column: WritableColumnVector) {

  /** Reads the value that comes next, which is not null, into a row. The text stands behind it then, or anywhere if it is `Unfit`. */
  def value(text: JsonText, row: Int): Unit

  final def read(text: JsonText, row: Int): Unit = if (text.isNull()) empty(row) else value(text, row)

  /** Makes the row NULL. */
  final def empty(row: Int): Unit = if (column ne null) column.putNull(row)

  /** Takes away what an earlier value may have left there. */
  final def clear(row: Int): Unit = if (column ne null) column.putNotNull(row)

  /** Makes room for a row. */
  def reserve(row: Int): Unit = if (column ne null) column.reserve(row + 1)

  protected final def unfit(start: Int): Nothing = throw new Unfit(start, wanted, "")
}

object Reads {

  /** What reads values of a type into a column, or only checks them where `column` is null. */
  def of(what: DataType, column: WritableColumnVector): Reads = what match {
    case BooleanType => new Booleans(what.sql, column)
    case ByteType => new Bytes(what.sql, column)
    case ShortType => new Shorts(what.sql, column)
    case IntegerType => new Ints(what.sql, column)
    case LongType => new Longs(what.sql, column)
    case FloatType => new Floats(what.sql, column)
    case DoubleType => new Doubles(what.sql, column)
    case decimal: DecimalType => new Decimals(decimal, column)
    case StringType => new Strings(what.sql, column)
    case BinaryType => new Binaries(what.sql, column)
    case DateType => new Dates(what.sql, column)
    case TimestampType => new Times(what.sql, column, local = false)
    case TimestampNTZType => new Times(what.sql, column, local = true)
    case ArrayType(element, _) => new Arrays(what.sql, column, of(element, if (column eq null) null else column.arrayData()))
    case MapType(key, value, _) =>
      new Maps(what.sql, column, of(key, child(column, 0)), of(value, child(column, 1)))
    case struct: StructType =>
      new Structs(what.sql, column, Members.of(struct, at => child(column, at)))
    case other => throw new IllegalStateException(s"the log has no type ${other.sql}")
  }

  private def child(column: WritableColumnVector, at: Int): WritableColumnVector = if (column eq null) null else column.getChild(at)
}

private final class Booleans(wanted: String, column: WritableColumnVector) extends Reads(wanted, column) {
  override def value(text: JsonText, row: Int): Unit = {
    val start = text.at
    val found = text.peek() match {
      case 't' => text.word(JsonText.True); true
      case 'f' => text.word(JsonText.False); false
      case '"' =>
        text.string()
        val isTrue = Word.is(text, "true")
        if (!isTrue && !Word.is(text, "false")) unfit(start)
        isTrue
      case _ => unfit(start)
    }
    if (column ne null) column.putBoolean(row, found)
  }
}

private object Word {

  /** Whether the string that was read is this word, in whichever case. */
  def is(text: JsonText, word: String): Boolean = text.until - text.from == word.length && {
    var at = 0
    while (at < word.length && lower(text.chars(text.from + at)) == word.charAt(at)) at += 1
    at == word.length
  }

  private def lower(byte: Byte): Int = if (byte >= 'A' && byte <= 'Z') byte + 32 else byte
}

private abstract class Integers(wanted: String, column: WritableColumnVector, least: Long, most: Long) extends Reads(wanted, column) {
  private val whole = new Whole

  final override def value(text: JsonText, row: Int): Unit = {
    val first = text.peek()
    val start = text.at
    val short = if (first == '"') JsonText.Other else text.short()
    val fits =
      if (short != JsonText.Other) {
        whole.value = short
        true
      } else if (first == '"') {
        text.string()
        whole.parse(text.chars, text.from, text.until)
      } else if (first == '-' || (first >= '0' && first <= '9')) {
        if (text.isWord(JsonText.MinusInfinity)) unfit(start)
        text.number() && whole.parse(text.bytes, start, text.at)
      } else false
    if (!fits || whole.value < least || whole.value > most) unfit(start)
    if (column ne null) put(row, whole.value)
  }

  protected def put(row: Int, value: Long): Unit
}

private final class Bytes(wanted: String, column: WritableColumnVector) extends Integers(wanted, column, Byte.MinValue, Byte.MaxValue) {
  override protected def put(row: Int, value: Long): Unit = column.putByte(row, value.toByte)
}

private final class Shorts(wanted: String, column: WritableColumnVector) extends Integers(wanted, column, Short.MinValue, Short.MaxValue) {
  override protected def put(row: Int, value: Long): Unit = column.putShort(row, value.toShort)
}

private final class Ints(wanted: String, column: WritableColumnVector) extends Integers(wanted, column, Int.MinValue, Int.MaxValue) {
  override protected def put(row: Int, value: Long): Unit = column.putInt(row, value.toInt)
}

private final class Longs(wanted: String, column: WritableColumnVector) extends Integers(wanted, column, Long.MinValue, Long.MaxValue) {
  override protected def put(row: Int, value: Long): Unit = column.putLong(row, value)
}

/** Numbers that are not whole, in JSON's own form or as text. */
private abstract class Numerals(wanted: String, column: WritableColumnVector) extends Reads(wanted, column) {
  protected val numeral = new Numeral

  /** Whether a number came, which is then in `numeral`, and stands behind the text. Words are left to `word`. */
  protected final def parsed(text: JsonText): Boolean = {
    val first = text.peek()
    val start = text.at
    if (first == '"') {
      text.string()
      numeral.parse(text.chars, text.from, text.until)
    } else if ((first == '-' && !text.isWord(JsonText.MinusInfinity)) || (first >= '0' && first <= '9')) {
      isWhole = text.number()
      numeral.parse(text.bytes, start, text.at)
    } else false
  }

  /** Whether the last one was a whole number of JSON's own, which has no sign where it is zero. */
  protected var isWhole = false
}

private abstract class Floating(wanted: String, column: WritableColumnVector) extends Numerals(wanted, column) {
  final override def value(text: JsonText, row: Int): Unit = {
    text.peek()
    val start = text.at
    isWhole = false
    isWord = false
    val found =
      if (parsed(text)) { if (isWhole && numeral.isZero) 0.0 else numeral.double }
      else {
        text.at = start
        word(text, start)
      }
    if (!isWord && isBeyond(found)) unfit(start)
    if (column ne null) put(row, found)
  }

  private var isWord = false

  private def word(text: JsonText, start: Int): Double = {
    isWord = true
    val found = text.peek() match {
      case 'N' => text.word(JsonText.NaN); Double.NaN
      case 'I' => text.word(JsonText.Infinity); Double.PositiveInfinity
      case '-' => text.word(JsonText.MinusInfinity); Double.NegativeInfinity
      case '"' =>
        text.string()
        if (Word.is(text, "nan")) Double.NaN
        else if (Word.is(text, "infinity")) Double.PositiveInfinity
        else if (Word.is(text, "-infinity")) Double.NegativeInfinity
        else unfit(start)
      case _ => unfit(start)
    }
    found
  }

  /** Whether the column has no number that is near. */
  protected def isBeyond(value: Double): Boolean

  protected def put(row: Int, value: Double): Unit
}

private final class Floats(wanted: String, column: WritableColumnVector) extends Floating(wanted, column) {
  override protected def isBeyond(value: Double): Boolean = value.toFloat.isInfinite
  override protected def put(row: Int, value: Double): Unit = column.putFloat(row, value.toFloat)
}

private final class Doubles(wanted: String, column: WritableColumnVector) extends Floating(wanted, column) {
  override protected def isBeyond(value: Double): Boolean = value.isInfinite
  override protected def put(row: Int, value: Double): Unit = column.putDouble(row, value)
}

/** Decimals fit exactly, or not at all. */
private final class Decimals(what: DecimalType, column: WritableColumnVector) extends Numerals(what.sql, column) {
  private val bound = if (what.precision <= Decimal.MAX_LONG_DIGITS) math.pow(10, what.precision).toLong else Long.MaxValue

  override def value(text: JsonText, row: Int): Unit = {
    text.peek()
    val start = text.at
    if (!parsed(text)) unfit(start)
    val unscaled = numeral.unscaled(what.scale)
    if (unscaled != Numeral.Other) {
      if (math.abs(unscaled) >= bound) unfit(start)
      if (column ne null) column.putDecimal(row, Decimal.createUnsafe(unscaled, what.precision, what.scale), what.precision)
    } else {
      val found = numeral.decimal(what.scale)
      if (found == null || found.precision > what.precision) unfit(start)
      if (column ne null) column.putDecimal(row, Decimal(found, what.precision, what.scale), what.precision)
    }
  }
}

private final class Strings(wanted: String, column: WritableColumnVector) extends Reads(wanted, column) {
  override def value(text: JsonText, row: Int): Unit = {
    val first = text.peek()
    val start = text.at
    if (first != '"') unfit(start)
    text.string()
    if (text.isHalf) unfit(start)
    if (column ne null) column.putByteArray(row, text.chars, text.from, text.until - text.from)
  }
}

private final class Binaries(wanted: String, column: WritableColumnVector) extends Reads(wanted, column) {
  override def value(text: JsonText, row: Int): Unit = {
    val first = text.peek()
    val start = text.at
    if (first != '"') unfit(start)
    text.string()
    // Java would also take what is not filled up.
    if ((text.until - text.from) % 4 != 0) unfit(start)
    val found =
      try Base64.getDecoder.decode(java.util.Arrays.copyOfRange(text.chars, text.from, text.until))
      catch { case _: IllegalArgumentException => unfit(start) }
    if (column ne null) column.putByteArray(row, found, 0, found.length)
  }
}

private final class Dates(wanted: String, column: WritableColumnVector) extends Reads(wanted, column) {
  private val moment = new Moment

  override def value(text: JsonText, row: Int): Unit = {
    val first = text.peek()
    val start = text.at
    if (first != '"') unfit(start)
    text.string()
    if (!moment.date(text.chars, text.from, text.until)) unfit(start)
    if (column ne null) column.putInt(row, moment.days)
  }
}

private final class Times(wanted: String, column: WritableColumnVector, local: Boolean) extends Reads(wanted, column) {
  private val moment = new Moment

  override def value(text: JsonText, row: Int): Unit = {
    val first = text.peek()
    val start = text.at
    if (first != '"') unfit(start)
    text.string()
    if (!moment.time(text.chars, text.from, text.until) || (local && moment.hasZone)) unfit(start)
    if (column ne null) column.putLong(row, moment.micros)
  }
}
