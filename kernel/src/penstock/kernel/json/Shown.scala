package penstock.kernel.json

import java.nio.charset.StandardCharsets.{ISO_8859_1, UTF_8}
import java.util.LinkedHashMap

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

/** JSON values for the text of an error, not too long of them; the same text as `shown` of `src/penstock/text.py` gives. */
object Shown {
  private val Longest = 60

  /** The value that begins at byte `start`. */
  def value(text: JsonText, start: Int): String = {
    val stood = text.at
    text.at = start
    val found = written(text)
    text.at = stood
    cut(found)
  }

  private def cut(text: String): String =
    if (text.codePointCount(0, text.length) <= Longest) text else text.substring(0, text.offsetByCodePoints(0, Longest - 3)) + "..."

  private def written(text: JsonText): String = text.peek() match {
    case '"' => string(text)
    case '{' => members(text).asScala.map { case (name, value) => s"$name: $value" }.mkString("{", ", ", "}")
    case '[' => items(text).mkString("[", ", ", "]")
    case 'N' | 'I' => word(text)
    case '-' if text.isWord(JsonText.MinusInfinity) => word(text)
    case 't' | 'f' | 'n' => raw(text)
    case _ => number(text)
  }

  private def raw(text: JsonText): String = {
    val begin = text.at
    text.skip()
    new String(text.bytes, begin, text.at - begin, ISO_8859_1)
  }

  private def word(text: JsonText): String = "\"" + raw(text) + "\""

  private def number(text: JsonText): String = {
    val begin = text.at
    val isWhole = text.number()
    val found = new String(text.bytes, begin, text.at - begin, ISO_8859_1)
    if (isWhole) { if (found == "-0") "0" else found }
    else "\"" + exact(found) + "\""
  }

  /** As Python's decimal numbers are written: like Java's, but with the sign of nothing and exponents of any length. */
  private def exact(found: String): String = {
    val (number, power) = found.span(each => each != 'e' && each != 'E')
    val (whole, fraction) = number.stripPrefix("-").span(_ != '.')
    val digits = (whole + fraction.drop(1)).replaceFirst("^0+(?=.)", "")
    val exponent = (if (power.isEmpty) 0L else power.drop(1).toLong) - math.max(0, fraction.length - 1)
    val left = exponent + digits.length
    val dot = if (exponent <= 0 && left > -6) left.toInt else 1
    val text =
      if (dot <= 0) "0." + "0" * -dot + digits
      else if (dot >= digits.length) digits
      else digits.take(dot) + "." + digits.drop(dot)
    (if (found.startsWith("-")) "-" else "") + text + (if (left == dot) "" else f"E${left - dot}%+d")
  }

  private def string(text: JsonText): String = {
    text.string()
    val out = new StringBuilder("\"")
    val content = if (text.isHalf) halves(text) else new String(text.chars, text.from, text.until - text.from, UTF_8)
    content.foreach {
      case '"' => out ++= "\\\""
      case '\\' => out ++= "\\\\"
      case '\n' => out ++= "\\n"
      case '\r' => out ++= "\\r"
      case '\t' => out ++= "\\t"
      case '\f' => out ++= "\\f"
      case '\b' => out ++= "\\b"
      case each if each < ' ' => out ++= f"\\u${each.toInt}%04x"
      case each if each >= Half && each < Half + 0x800 => out ++= f"\\u${each - Half + 0xd800}%04x"
      case each => out += each
    }
    (out += '"').toString
  }

  /** Halves of characters moved to where no characters are, until they are written. */
  private def halves(text: JsonText): String = {
    val bytes = java.util.Arrays.copyOfRange(text.chars, text.from, text.until)
    bytes.indices.foreach { at => if (at + 1 < bytes.length && bytes(at) == 0xed.toByte && (bytes(at + 1) & 0xff) >= 0xa0) {
      bytes(at) = 0xee.toByte
      bytes(at + 1) = (0x80 | bytes(at + 1) & 0x1f).toByte
    } }
    new String(bytes, UTF_8)
  }
  private val Half = 0xe000

  private def members(text: JsonText): LinkedHashMap[String, String] = {
    val found = new LinkedHashMap[String, String]
    text.pass('{')
    if (!text.has('}')) {
      var more = true
      while (more) {
        text.peek()
        val name = string(text)
        text.pass(':')
        found.put(name, written(text))
        more = text.next('}')
      }
    }
    found
  }

  private def items(text: JsonText): Seq[String] = {
    val found = ArrayBuffer.empty[String]
    text.pass('[')
    if (!text.has(']')) {
      var more = true
      while (more) {
        found += written(text)
        more = text.next(']')
      }
    }
    found.toSeq
  }
}
