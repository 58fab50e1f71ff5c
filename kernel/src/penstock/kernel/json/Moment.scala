package penstock.kernel.json

/** Dates and times in text, as ISO 8601 has them. `src/penstock/text.py` reads the same.
  *
  * A date is `2024-01-31` or `20240131`. A time is a date, or a date, `T` or a blank, and the time of day: `12`, `12:30`, `12:30:15`,
  * `12:30:15.123456`, or the same without colons; then perhaps a zone: `Z`, `+02`, `+02:00`, `+0200`, also with seconds.
  *
  * State: the last one that was read.
  */
final class Moment {
  var days = 0
  var micros = 0L
  var hasZone = false
  private var bytes: Array[Byte] = _
  private var at, until = 0
  private var hasSeconds = false

  /** Whether all of it is a date, which is then in `days`. */
  def date(bytes: Array[Byte], from: Int, until: Int): Boolean = {
    begin(bytes, from, until)
    day() && at == until
  }

  /** Whether all of it is a time, which is then in `micros`: of UTC where it has a zone or there is none. */
  def time(bytes: Array[Byte], from: Int, until: Int): Boolean = {
    begin(bytes, from, until)
    hasZone = false
    if (!day()) return false
    micros = days * Moment.Day
    if (at == until) return true
    val between = bytes(at)
    at += 1
    (between == 'T' || between == 't' || between == ' ') && ofDay() && zone() && at == until &&
      micros >= Moment.First && micros <= Moment.Last
  }

  private def begin(bytes: Array[Byte], from: Int, until: Int): Unit = {
    this.bytes = bytes
    this.at = from
    this.until = until
  }

  private def day(): Boolean = {
    val year = number(4)
    val dashes = is('-')
    val month = number(2)
    if (dashes && !is('-')) return false
    val day = number(2)
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > Moment.length(year, month)) return false
    days = Moment.days(year, month, day)
    true
  }

  private def ofDay(): Boolean = clock() && (if (hasSeconds && (is('.') || is(','))) fraction() else true)

  /** Hours, perhaps minutes, perhaps seconds, with colons between them or not. */
  private def clock(): Boolean = {
    val hours = number(2)
    val colons = at < until && bytes(at) == ':'
    hasSeconds = false
    micros += hours * Moment.Hour
    if (hours < 0 || hours > 23) false
    else if (!follows(colons)) true
    else {
      val minutes = number(2)
      micros += minutes * Moment.Minute
      if (minutes < 0 || minutes > 59) false
      else if (!follows(colons)) true
      else {
        val seconds = number(2)
        micros += seconds * Moment.Second
        hasSeconds = true
        seconds >= 0 && seconds <= 59
      }
    }
  }

  /** Whether there is more of a clock; the colon before it is passed. */
  private def follows(colons: Boolean): Boolean = if (colons) is(':') else at < until && JsonText.isDigit(bytes(at))

  private def fraction(): Boolean = {
    var unit = Moment.Second
    val begin = at
    while (at < until && JsonText.isDigit(bytes(at))) {
      unit /= 10
      micros += (bytes(at) - '0') * unit
      at += 1
    }
    at > begin && at - begin <= 6
  }

  private def zone(): Boolean = {
    if (at == until) return true
    hasZone = true
    val sign = bytes(at)
    at += 1
    if (sign == 'Z') return true
    if (sign != '+' && sign != '-') return false
    val before = micros
    micros = 0L
    val fits = clock()
    micros = if (sign == '-') before + micros else before - micros
    fits
  }

  private def is(byte: Char): Boolean = at < until && bytes(at) == byte && { at += 1; true }

  /** The number that the next digits give; -1 if these are no digits. */
  private def number(digits: Int): Int = {
    if (at + digits > until) return -1
    var value = 0
    val end = at + digits
    while (at < end) {
      if (!JsonText.isDigit(bytes(at))) return -1
      value = value * 10 + (bytes(at) - '0')
      at += 1
    }
    value
  }
}

object Moment {
  val Second = 1000000L
  val Minute: Long = 60 * Second
  val Hour: Long = 60 * Minute
  val Day: Long = 24 * Hour

  /** Years 1 to 9999 are what a log takes. */
  val First: Long = days(1, 1, 1) * Day
  val Last: Long = days(10000, 1, 1) * Day - 1

  /** Days since 1970-01-01. */
  def days(year: Int, month: Int, day: Int): Int = {
    // Years that begin with March have the leap day at their end.
    val shifted = if (month <= 2) year - 1 else year
    val ofYear = (153 * (month + (if (month > 2) -3 else 9)) + 2) / 5 + day - 1
    shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + ofYear - 719468
  }

  def length(year: Int, month: Int): Int =
    if (month == 2) { if (year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)) 29 else 28 }
    else if (month == 4 || month == 6 || month == 9 || month == 11) 30
    else 31
}
