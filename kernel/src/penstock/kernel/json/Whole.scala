package penstock.kernel.json

/** Whole numbers of up to 64 bits in text: a sign, which may be `+`, and digits. */
final class Whole {
  var value = 0L

  /** Whether bytes `[from, until)` are such a number; it is then in `value`. */
  def parse(bytes: Array[Byte], from: Int, until: Int): Boolean = {
    val signed = from < until && (bytes(from) == '-' || bytes(from) == '+')
    val negative = signed && bytes(from) == '-'
    var at = if (signed) from + 1 else from
    if (at == until || until - at > JsonText.LongestWhole) return false
    // Counted down: there is one more negative number than positive ones.
    var sum = 0L
    while (at < until) {
      val digit = bytes(at) - '0'
      if (digit < 0 || digit > 9 || sum < Whole.Least || (sum == Whole.Least && digit > (if (negative) 8 else 7))) return false
      sum = sum * 10 - digit
      at += 1
    }
    value = if (negative) sum else -sum
    true
  }
}

object Whole {
  private val Least = Long.MinValue / 10
}
