package penstock.kernel.engine

import java.io.{DataInput, DataOutput}

/** The exact sum of doubles, under additions and subtractions in any order, rounded once.
  *
  * Kept as doubles that do not overlap, smallest first (Shewchuk's expansions, as `math.fsum` keeps them); infinities and NaNs are counted apart, so that they can
  * leave again. Giants, of which a few are more than the largest double, are summed apart, made smaller by a power of two.
  */
final class ExactSum {
  private var parts = new Array[Double](2)
  private var count = 0
  private var nans, plus, minus = 0L
  private var giants: ExactSum = null

  def add(value: Double, weight: Long): Unit =
    if (math.abs(value) >= ExactSum.Giant && java.lang.Double.isFinite(value)) giant.add(value / ExactSum.Scale, weight)
    else if (java.lang.Double.isFinite(value)) {
      if (weight == 1) grow(value)
      else if (weight == -1) grow(-value)
      else times(value, weight)
    } else if (value.isNaN) nans += weight
    else if (value > 0) plus += weight
    else minus += weight

  private def giant: ExactSum = {
    if (giants == null) giants = new ExactSum
    giants
  }

  def add(other: ExactSum): Unit = {
    growBy(other, 1.0)
    if (other.giants != null) giant.add(other.giants)
    nans += other.nans
    plus += other.plus
    minus += other.minus
  }

  private def growBy(other: ExactSum, factor: Double): Unit = {
    var i = 0
    while (i < other.count) {
      grow(other.parts(i) * factor)
      i += 1
    }
  }

  /** value * weight, exactly: the weight in pieces of 26 bits, and each product as its high and low part. */
  private def times(value: Double, weight: Long): Unit = {
    var rest = weight
    var shift = 1.0
    while (rest != 0) {
      val piece = (rest % (1L << 26)).toDouble * shift
      val product = value * piece
      grow(product)
      grow(Math.fma(value, piece, -product))
      rest /= (1L << 26)
      shift *= (1L << 26).toDouble
    }
  }

  private def grow(added: Double): Unit = {
    var x = added
    var kept = 0
    var i = 0
    while (i < count) {
      var y = parts(i)
      if (math.abs(x) < math.abs(y)) {
        val t = x
        x = y
        y = t
      }
      val high = x + y
      val low = y - (high - x)
      if (low != 0.0) {
        parts(kept) = low
        kept += 1
      }
      x = high
      i += 1
    }
    if (x != 0.0) {
      if (kept == parts.length) parts = java.util.Arrays.copyOf(parts, kept * 2)
      parts(kept) = x
      kept += 1
    }
    count = kept
  }

  /** The sum, correctly rounded. */
  def value: Double =
    if (nans > 0 || (plus > 0 && minus > 0)) Double.NaN
    else if (plus > 0) Double.PositiveInfinity
    else if (minus > 0) Double.NegativeInfinity
    else if (giants == null) rounded
    else withGiants

  /** Where giants have outweighed each other, what is left is not made smaller: it might be nothing then. */
  private def withGiants: Double = {
    val whole = new ExactSum
    if (math.abs(giants.rounded) < ExactSum.Giant / ExactSum.Scale) {
      whole.growBy(this, 1.0)
      whole.growBy(giants, ExactSum.Scale)
      whole.rounded
    } else {
      whole.growBy(giants, 1.0)
      whole.growBy(this, 1 / ExactSum.Scale)
      whole.rounded * ExactSum.Scale
    }
  }

  private def rounded: Double = {
    if (count == 0) return 0.0
    var n = count - 1
    var high = parts(n)
    var low = 0.0
    while (n > 0 && low == 0.0) {
      val x = high
      n -= 1
      val y = parts(n)
      high = x + y
      low = y - (high - x)
    }
    // Half-way cases: the parts below decide.
    if (n > 0 && ((low < 0.0 && parts(n - 1) < 0.0) || (low > 0.0 && parts(n - 1) > 0.0))) {
      val y = low * 2.0
      val x = high + y
      if (y == x - high) high = x
    }
    high
  }

  def write(out: DataOutput): Unit = {
    val special = nans != 0 || plus != 0 || minus != 0
    val large = giants != null && giants.count > 0
    val head = if (large) count + ExactSum.Large else count
    out.writeByte(if (special) -head - 1 else head)
    var i = 0
    while (i < count) {
      out.writeDouble(parts(i))
      i += 1
    }
    if (special) {
      out.writeLong(nans)
      out.writeLong(plus)
      out.writeLong(minus)
    }
    if (large) giants.write(out)
  }
}

object ExactSum {
  /** From here on a number is a giant: so many others, however often each is there, do not come near the largest double. */
  private val Giant = math.pow(2, 900)
  private val Scale = math.pow(2, 128)
  /** In the first byte: giants come last. There are never so many parts, for they do not overlap. */
  private val Large = 64

  def read(in: DataInput): ExactSum = {
    val sum = new ExactSum
    val first = in.readByte()
    val head = if (first < 0) -first - 1 else first.toInt
    sum.count = head % Large
    sum.parts = new Array[Double](math.max(2, sum.count))
    var i = 0
    while (i < sum.count) {
      sum.parts(i) = in.readDouble()
      i += 1
    }
    if (first < 0) {
      sum.nans = in.readLong()
      sum.plus = in.readLong()
      sum.minus = in.readLong()
    }
    if (head >= Large) sum.giants = read(in)
    sum
  }
}
