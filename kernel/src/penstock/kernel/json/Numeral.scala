package penstock.kernel.json

import java.math.{BigDecimal, BigInteger}
import java.nio.charset.StandardCharsets.ISO_8859_1

/** Decimal numbers in text: `-12.50`, `1e3`, `.5`.
  *
  * State: the last number: its digits, as a long where there are at most 18 of them, and the power of ten that they are to be multiplied with.
  */
final class Numeral {
  private var bytes: Array[Byte] = _
  private var from, until = 0
  private var digits = 0L
  private var count = 0
  private var power = 0L
  private var negative = false

  /** Whether bytes `[from, until)` are such a number. */
  def parse(bytes: Array[Byte], from: Int, until: Int): Boolean = {
    this.bytes = bytes
    this.from = from
    this.until = until
    val signed = from < until && (bytes(from) == '-' || bytes(from) == '+')
    negative = signed && bytes(from) == '-'
    digits = 0L
    count = 0
    power = 0L
    var at = if (signed) from + 1 else from
    var point = -1
    var seen = 0
    while (at < until && (JsonText.isDigit(bytes(at)) || bytes(at) == '.')) {
      if (bytes(at) == '.') {
        if (point >= 0) return false
        point = at
      } else {
        seen += 1
        if (count > 0 || bytes(at) != '0') count += 1
        if (count <= Numeral.InLong) digits = digits * 10 + (bytes(at) - '0')
      }
      at += 1
    }
    if (seen == 0) return false
    if (point >= 0) power = point + 1 - at
    at == until || exponent(at)
  }

  private def exponent(start: Int): Boolean = {
    if ((bytes(start) | 0x20) != 'e') return false
    val signed = start + 1 < until && (bytes(start + 1) == '-' || bytes(start + 1) == '+')
    var at = if (signed) start + 2 else start + 1
    if (at == until) return false
    var sum = 0L
    while (at < until) {
      if (!JsonText.isDigit(bytes(at)) || sum >= Numeral.Most) return false
      sum = sum * 10 + (bytes(at) - '0')
      at += 1
    }
    power += (if (signed && bytes(start + 1) == '-') -sum else sum)
    true
  }

  def isZero: Boolean = count == 0

  /** The nearest number of 64 bits, which may be infinite. */
  def double: Double =
    if (count <= Numeral.Exact && power >= -Numeral.Tens && power <= Numeral.Tens) {
      // Both are exact, so that what comes out is rounded once.
      val exact = if (power < 0) digits / Numeral.powers(-power.toInt) else digits * Numeral.powers(power.toInt)
      if (negative) -exact else exact
    } else java.lang.Double.parseDouble(new String(bytes, from, until - from, ISO_8859_1))

  /** What it is at this scale, where that is exact and has at most 18 digits; else `Numeral.Other`. */
  def unscaled(scale: Int): Long = {
    val shift = power + scale
    if (isZero) 0L
    else if (count > Numeral.InLong || shift < -Numeral.InLong || shift + count > Numeral.InLong) Numeral.Other
    else {
      val scaled = if (shift >= 0) digits * Numeral.longs(shift.toInt) else digits / Numeral.longs(-shift.toInt)
      if (shift < 0 && scaled * Numeral.longs(-shift.toInt) != digits) Numeral.Other else if (negative) -scaled else scaled
    }
  }

  /** What it is at this scale; null where that is not exact, or has more digits than any column. */
  def decimal(scale: Int): BigDecimal =
    if (isZero) BigDecimal.valueOf(0L, scale)
    else if (count + power + scale > Numeral.Widest || power + count < -Numeral.Widest) null
    else {
      val text = new String(bytes, from, until - from, ISO_8859_1).takeWhile(each => each != 'e' && each != 'E').filter(_.isDigit)
      val value = new BigDecimal(new BigInteger(text), math.toIntExact(-power))
      try (if (negative) value.negate else value).setScale(scale)
      catch { case _: ArithmeticException => null }
    }
}

object Numeral {

  /** No answer. */
  val Other: Long = Long.MinValue
  private val InLong = 18
  private val Exact = 15
  private val Tens = 22
  private val Widest = 80
  private val Most = 100000000000000000L
  private val powers = Array.iterate(1.0, Tens + 1)(_ * 10)
  private val longs = Array.iterate(1L, InLong + 1)(_ * 10)
}
