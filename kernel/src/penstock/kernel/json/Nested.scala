package penstock.kernel.json

import java.nio.ByteBuffer
import java.util.{Arrays => Bytewise, LinkedHashMap}

import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.types.StructType

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

/** Arrays: the elements lie one after the other in a column of their own. A place in it is not used again, whatever became of the row. */
private final class Arrays(wanted: String, column: WritableColumnVector, element: Reads) extends Reads(wanted, column) {
  override def value(text: JsonText, row: Int): Unit = {
    val first = text.peek()
    if (first != '[') unfit(text.at)
    text.at += 1
    val data = if (column eq null) null else column.arrayData()
    val begin = if (data eq null) 0 else data.getElementsAppended
    var count = 0
    try {
      if (!text.has(']')) {
        var more = true
        while (more) {
          element.reserve(begin + count)
          count += 1
          element.read(text, begin + count - 1)
          more = text.next(']')
        }
      }
    } catch { case error: Unfit => throw error.under(s"[${count - 1}]") }
    finally if (data ne null) data.addElementsAppended(count)
    if (column ne null) column.putArray(row, begin, count)
  }
}

/** Maps: an object, whose last value of a name counts, or an array of pairs. */
private final class Maps(wanted: String, column: WritableColumnVector, key: Reads, value: Reads) extends Reads(wanted, column) {
  private val pairs = ArrayBuffer.empty[(Int, Int)]

  override def value(text: JsonText, row: Int): Unit = {
    val first = text.peek()
    val start = text.at
    pairs.clear()
    if (first == '{') members(text)
    else if (first == '[') { if (!items(text)) unfit(start) }
    else unfit(start)
    val end = text.at
    put(text, row)
    text.at = end
  }

  private def put(text: JsonText, row: Int): Unit = {
    val data = if (column eq null) null else column.getChild(0)
    val begin = if (data eq null) 0 else data.getElementsAppended
    var count = 0
    // Maps may lie inside of maps.
    val found = pairs.toArray
    try found.foreach { case (keyStart, valueStart) =>
      key.reserve(begin + count)
      value.reserve(begin + count)
      count += 1
      text.at = keyStart
      if (text.isNull()) throw new Unfit(keyStart, key.wanted, "")
      key.value(text, begin + count - 1)
      text.at = valueStart
      try value.read(text, begin + count - 1)
      catch { case error: Unfit => throw error.under(s"[${Shown.value(text, keyStart)}]") }
    } finally if (data ne null) {
      data.addElementsAppended(count)
      column.getChild(1).addElementsAppended(count)
    }
    if (column ne null) column.putArray(row, begin, count)
  }

  private def members(text: JsonText): Unit = {
    text.pass('{')
    if (!text.has('}')) {
      val found = new LinkedHashMap[ByteBuffer, (Int, Int)]
      var more = true
      while (more) {
        if (text.peek() != '"') throw NotJson
        val keyStart = text.at
        text.string()
        val name = ByteBuffer.wrap(Bytewise.copyOfRange(text.chars, text.from, text.until))
        text.pass(':')
        text.peek()
        // The last value counts, where the first one stood.
        val place = found.get(name)
        found.put(name, (if (place == null) keyStart else place._1, text.at))
        text.skip()
        more = text.next('}')
      }
      pairs ++= found.values.asScala
    }
  }

  /** Whether all of them are pairs. */
  private def items(text: JsonText): Boolean = {
    text.pass('[')
    if (text.has(']')) return true
    var (more, fits) = (true, true)
    while (more) {
      if (text.peek() == '[') fits &= pair(text)
      else {
        text.skip()
        fits = false
      }
      more = text.next(']')
    }
    fits
  }

  private def pair(text: JsonText): Boolean = {
    text.pass('[')
    if (text.has(']')) return false
    val starts = ArrayBuffer.empty[Int]
    var more = true
    while (more) {
      text.peek()
      starts += text.at
      text.skip()
      more = text.next(']')
    }
    if (starts.length == 2) pairs += starts(0) -> starts(1)
    starts.length == 2
  }
}

/** Structs: one column for each field, with the same rows. Fields that are not declared are not taken. */
private final class Structs(wanted: String, column: WritableColumnVector, members: Members) extends Reads(wanted, column) {
  override def reserve(row: Int): Unit = {
    super.reserve(row)
    members.reserve(row)
  }

  override def value(text: JsonText, row: Int): Unit = {
    val first = text.peek()
    val start = text.at
    if (first != '{') unfit(start)
    val trouble = members.read(text, row)
    if (members.hasOthers) unfit(start)
    if (trouble ne null) throw trouble._2.under("." + trouble._1)
  }
}

/** The members of objects, read into one column for each.
  *
  * In: objects. The last value of a name counts. State: which fields had a value, and what did not fit, in the object read last.
  */
final class Members(names: Array[String], reads: Array[Reads], required: Array[Boolean]) {
  private val known = new Names(names)
  private val seen = new Array[Int](names.length)
  private val unfit = new Array[Unfit](names.length)
  private var turn = 0
  private var others, own = false
  private var troubled = false

  /** Whether the object had members that are not declared. */
  def hasOthers: Boolean = others

  /** Whether it had any that is. */
  def hasOwn: Boolean = own

  def isPresent(field: Int): Boolean = seen(field) == turn

  def reserve(row: Int): Unit = reads.foreach(_.reserve(row))

  /** Makes all of a row NULL. */
  def empty(row: Int): Unit = {
    var field = 0
    while (field < reads.length) {
      reads(field).empty(row)
      field += 1
    }
  }

  /** Reads the object that comes next into a row; the first field that does not fit and why, or null. */
  def read(text: JsonText, row: Int): (String, Unfit) = {
    begin()
    text.pass('{')
    if (!text.has('}')) {
      var more = true
      var guess = 0
      while (more) {
        if (text.peek() != '"') throw NotJson
        text.string()
        val field = known.find(text.chars, text.from, text.until, guess)
        text.pass(':')
        if (field < 0) {
          others = true
          text.skip()
        } else {
          member(text, field, row)
          guess = field + 1
        }
        more = text.next('}')
      }
    }
    finish(row)
  }

  /** Reads the value that comes next as that of the only field. */
  def readOnly(text: JsonText, row: Int): (String, Unfit) = {
    begin()
    member(text, 0, row)
    finish(row)
  }

  private def begin(): Unit = {
    turn += 1
    others = false
    own = false
    if (troubled) java.util.Arrays.fill(unfit.asInstanceOf[Array[AnyRef]], null)
    troubled = false
  }

  private def member(text: JsonText, field: Int, row: Int): Unit = {
    own = true
    if (troubled) unfit(field) = null
    if (text.isNull()) seen(field) = 0
    else {
      val start = text.at
      val reading = reads(field)
      reading.clear(row)
      seen(field) = turn
      try reading.value(text, row)
      catch {
        case error: Unfit =>
          troubled = true
          unfit(field) = error
          // It still has to be JSON.
          text.at = start
          text.skip()
      }
    }
  }

  private def finish(row: Int): (String, Unfit) = {
    var trouble: (String, Unfit) = null
    var field = 0
    while (field < reads.length) {
      if (seen(field) != turn) {
        reads(field).empty(row)
        if (required(field) && (trouble eq null)) trouble = names(field) -> new Unfit(Unfit.Missing, reads(field).wanted, "")
      } else if (troubled && (unfit(field) ne null) && (trouble eq null)) trouble = names(field) -> unfit(field)
      field += 1
    }
    trouble
  }
}

object Members {
  def of(struct: StructType, column: Int => WritableColumnVector): Members =
    new Members(struct.fieldNames, struct.fields.indices.map(at => Reads.of(struct(at).dataType, column(at))).toArray, struct.fields.map(!_.nullable))
}
