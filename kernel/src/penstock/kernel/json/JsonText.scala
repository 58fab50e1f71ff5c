package penstock.kernel.json

import java.util.Arrays

/** The text is no JSON. */
object NotJson extends RuntimeException("not JSON", null, false, false)

/** JSON in UTF-8, read in place from front to back: `at` is the next byte. What is read is what Python's `json` reads, NaN and infinities included.
  *
  * The bytes are known to be UTF-8. The content of a string that was read lies in `chars` from `from` to `until`: in the text itself where
  * nothing in it is escaped.
  */
final class JsonText {
  var bytes: Array[Byte] = Array.emptyByteArray
  var at = 0
  private var end = 0

  var chars: Array[Byte] = Array.emptyByteArray
  var from = 0
  var until = 0

  /** Whether the string names half of a character, which JSON can and text cannot. */
  var isHalf = false

  def over(text: Array[Byte]): Unit = {
    bytes = text
    at = 0
    end = text.length
  }

  /** The next byte that is no blank, or -1 at the end. It is not passed. */
  def peek(): Int = {
    while (at < end && JsonText.isBlank(bytes(at))) at += 1
    if (at < end) bytes(at) else -1
  }

  def pass(byte: Char): Unit = if (peek() == byte) at += 1 else throw NotJson

  /** Passes the byte if it is the next. */
  def has(byte: Char): Boolean = peek() == byte && { at += 1; true }

  /** Nothing but blanks may be left. */
  def finish(): Unit = if (peek() != -1) throw NotJson

  /** Passes `null` if that is the value. */
  def isNull(): Boolean = peek() == 'n' && { word(JsonText.Null); true }

  def word(expected: Array[Byte]): Unit =
    if (end - at >= expected.length && Arrays.equals(bytes, at, at + expected.length, expected, 0, expected.length)) at += expected.length
    else throw NotJson

  /** Whether this word comes here, which is then not passed. */
  def isWord(expected: Array[Byte]): Boolean =
    end - at >= expected.length && Arrays.equals(bytes, at, at + expected.length, expected, 0, expected.length)

  /** Reads the string that begins here. */
  def string(): Unit = {
    pass('"')
    val begin = at
    while (at < end && bytes(at) != '"' && bytes(at) != '\\' && !isControl(bytes(at))) at += 1
    isHalf = false
    if (at < end && bytes(at) == '"') {
      chars = bytes
      from = begin
      until = at
      at += 1
    } else escaped(begin)
  }

  private def escaped(begin: Int): Unit = {
    val out = new Unescaped(math.max(2 * (at - begin), 64))
    out.copy(bytes, begin, at)
    while (at < end && bytes(at) != '"') {
      if (isControl(bytes(at))) throw NotJson
      if (bytes(at) == '\\') {
        at += 1
        escape(out)
      } else {
        out.add(bytes(at))
        at += 1
      }
    }
    if (at >= end) throw NotJson
    at += 1
    chars = out.bytes
    from = 0
    until = out.size
  }

  private def escape(out: Unescaped): Unit = {
    if (at >= end) throw NotJson
    val named = JsonText.Escapes.indexOf(bytes(at))
    if (named >= 0) {
      out.add(JsonText.Escaped.charAt(named).toByte)
      at += 1
    } else if (bytes(at) == 'u') {
      val first = unit(at + 1)
      at += 5
      if (Character.isHighSurrogate(first.toChar) && at + 1 < end && bytes(at) == '\\' && bytes(at + 1) == 'u' && Character.isLowSurrogate(unit(at + 2).toChar)) {
        out.code(Character.toCodePoint(first.toChar, unit(at + 2).toChar))
        at += 6
      } else {
        if (Character.isSurrogate(first.toChar)) isHalf = true
        out.code(first)
      }
    } else throw NotJson
  }

  /** The four hexadecimal digits from `start` on. */
  private def unit(start: Int): Int = {
    if (start + 4 > end) throw NotJson
    var value = 0
    var place = start
    while (place < start + 4) {
      val digit = if (bytes(place) < 0) -1 else Character.digit(bytes(place).toChar, 16)
      if (digit < 0) throw NotJson
      value = value << 4 | digit
      place += 1
    }
    value
  }

  /** The whole number of at most 18 digits that comes here, which is passed; or `Other`, and nothing is passed. */
  def short(): Long = {
    val negative = at < end && bytes(at) == '-'
    val first = if (negative) at + 1 else at
    var place = first
    var sum = 0L
    while (place < end && JsonText.isDigit(bytes(place))) {
      sum = sum * 10 + (bytes(place) - '0')
      place += 1
    }
    val digits = place - first
    val goesOn = place < end && (bytes(place) == '.' || (bytes(place) | 0x20) == 'e')
    if (digits == 0 || digits > JsonText.ShortDigits || (digits > 1 && bytes(first) == '0') || goesOn) JsonText.Other
    else {
      at = place
      if (negative) -sum else sum
    }
  }

  /** Passes the number that begins here; whether it is a whole number, written without point and exponent. */
  def number(): Boolean = {
    val begin = at
    if (at < end && bytes(at) == '-') at += 1
    if (at < end && bytes(at) == '0') at += 1 else digits()
    val whole = at
    if (at + 1 < end && bytes(at) == '.' && JsonText.isDigit(bytes(at + 1))) {
      at += 1
      digits()
    }
    exponent()
    // As Python has it: longer whole numbers are not read.
    if (at == whole && at - begin > JsonText.LongestWhole && at - begin - (if (bytes(begin) == '-') 1 else 0) > JsonText.LongestWhole) throw NotJson
    at == whole
  }

  private def exponent(): Unit = if (at < end && (bytes(at) | 0x20) == 'e') {
    val signed = at + 1 < end && (bytes(at + 1) == '+' || bytes(at + 1) == '-')
    val first = at + (if (signed) 2 else 1)
    if (first < end && JsonText.isDigit(bytes(first))) {
      at = first
      while (at < end && bytes(at) == '0') at += 1
      val begin = at
      while (at < end && JsonText.isDigit(bytes(at))) at += 1
      if (at - begin > JsonText.LongestExponent) throw NotJson
    }
  }

  private def digits(): Unit = {
    val begin = at
    while (at < end && JsonText.isDigit(bytes(at))) at += 1
    if (at == begin) throw NotJson
  }

  /** Passes the value that comes next, whatever it is. */
  def skip(depth: Int = 0): Unit = peek() match {
    case '"' => skipString()
    case '{' => skipMembers('}', depth)
    case '[' => skipMembers(']', depth)
    case 't' => word(JsonText.True)
    case 'f' => word(JsonText.False)
    case 'n' => word(JsonText.Null)
    case 'N' => word(JsonText.NaN)
    case 'I' => word(JsonText.Infinity)
    case '-' if isWord(JsonText.MinusInfinity) => word(JsonText.MinusInfinity)
    case _ => number()
  }

  private def skipString(): Unit = {
    val begin = at
    at += 1
    while (at < end && bytes(at) != '"' && bytes(at) != '\\' && !isControl(bytes(at))) at += 1
    if (at < end && bytes(at) == '"') at += 1
    else {
      at = begin
      string()
    }
  }

  private def skipMembers(close: Char, depth: Int): Unit = {
    if (depth > JsonText.Deepest) throw NotJson
    at += 1
    if (!has(close)) {
      var more = true
      while (more) {
        if (close == '}') {
          if (peek() != '"') throw NotJson
          skipString()
          pass(':')
        }
        skip(depth + 1)
        more = next(close)
      }
    }
  }

  /** After a member: whether another follows, or `close` has been passed. */
  def next(close: Char): Boolean = {
    val found = peek()
    at += 1
    if (found == ',') true
    else if (found == close) false
    else throw NotJson
  }

  private def isControl(byte: Byte): Boolean = byte >= 0 && byte < 0x20
}

object JsonText {
  val Null: Array[Byte] = "null".getBytes
  val True: Array[Byte] = "true".getBytes
  val False: Array[Byte] = "false".getBytes
  val NaN: Array[Byte] = "NaN".getBytes
  val Infinity: Array[Byte] = "Infinity".getBytes
  val MinusInfinity: Array[Byte] = "-Infinity".getBytes
  private val Escapes = "\"\\/bfnrt"
  private val Escaped = "\"\\/\b\f\n\r\t"
  val Other: Long = Long.MinValue
  private val ShortDigits = 18
  val LongestWhole = 4300
  val LongestExponent = 18
  private val Deepest = 900

  def isDigit(byte: Byte): Boolean = byte >= '0' && byte <= '9'
  def isBlank(byte: Byte): Boolean = byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'
}

/** The bytes of a string while its escapes are taken away. */
private final class Unescaped(room: Int) {
  var bytes = new Array[Byte](room)
  var size = 0

  def add(byte: Byte): Unit = {
    if (size == bytes.length) bytes = Arrays.copyOf(bytes, size * 2)
    bytes(size) = byte
    size += 1
  }

  def copy(source: Array[Byte], from: Int, until: Int): Unit = {
    if (size + until - from > bytes.length) bytes = Arrays.copyOf(bytes, (size + until - from) * 2)
    System.arraycopy(source, from, bytes, size, until - from)
    size += until - from
  }

  /** A character in UTF-8; half of one is written as if it were whole. */
  def code(point: Int): Unit =
    if (point < 0x80) add(point.toByte)
    else if (point < 0x800) { add((0xc0 | point >> 6).toByte); add((0x80 | point & 0x3f).toByte) }
    else if (point < 0x10000) {
      add((0xe0 | point >> 12).toByte)
      add((0x80 | point >> 6 & 0x3f).toByte)
      add((0x80 | point & 0x3f).toByte)
    } else {
      add((0xf0 | point >> 18).toByte)
      add((0x80 | point >> 12 & 0x3f).toByte)
      add((0x80 | point >> 6 & 0x3f).toByte)
      add((0x80 | point & 0x3f).toByte)
    }
}
