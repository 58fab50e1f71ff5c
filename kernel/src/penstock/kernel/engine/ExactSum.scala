package penstock.kernel.engine

import java.io.{DataInput, DataOutput}

/** The exact sum of doubles, under additions and subtractions in any order, rounded once.
  *
  * Kept as doubles that do not overlap, smallest first (Shewchuk's expansions, as `math.fsum` keeps them); infinities and NaNs are counted apart, so that they can
  * leave again. The sum of the magnitudes must stay below the largest double.
  */
final class ExactSum {
  private var parts = new Array[Double](2)
  private var count = 0
  private var nans, plus, minus = 0L

  def add(value: Double, weight: Long): Unit =
    if (java.lang.Double.isFinite(value)) {
      if (weight == 1) grow(value)
      else if (weight == -1) grow(-value)
      else times(value, weight)
    } else if (value.isNaN) nans += weight
    else if (value > 0) plus += weight
    else minus += weight

  def add(other: ExactSum): Unit = {
    var i = 0
    while (i < other.count) {
      grow(other.parts(i))
      i += 1
    }
    nans += other.nans
    plus += other.plus
    minus += other.minus
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
    else rounded

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
    out.writeByte(if (special) -count - 1 else count)
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
  }
}

object ExactSum {
  def read(in: DataInput): ExactSum = {
    val sum = new ExactSum
    val head = in.readByte()
    sum.count = if (head < 0) -head - 1 else head
    sum.parts = new Array[Double](math.max(2, sum.count))
    var i = 0
    while (i < sum.count) {
      sum.parts(i) = in.readDouble()
      i += 1
    }
    if (head < 0) {
      sum.nans = in.readLong()
      sum.plus = in.readLong()
      sum.minus = in.readLong()
    }
    sum
  }
}
