package penstock.kernel.engine

import java.util.Arrays
import org.apache.spark.sql.catalyst.expressions.{SpecificInternalRow, UnsafeProjection, UnsafeRow}
import penstock.kernel.state.Entries

/** The functions of a frame at work. */
final class FrameFunctions(framed: Framed, width: Int) {
  private val gathering = framed.gathering
  private val folds = gathering.folds.toArray
  private val arguments = UnsafeProjection.create(framed.arguments)
  private val filled = new SpecificInternalRow(framed.columns)
  private val compact = UnsafeProjection.create(framed.columns.toArray)
  private val row = new UnsafeRow(width)

  /** What was gathered on two stretches of rows can be put together. */
  def merges: Boolean = gathering.merges
  /** What was gathered grows with the rows. */
  def grows: Boolean = folds.exists(_.fold.grows)
  def fresh(): Gathered = gathering.fresh()
  def add(g: Gathered, bytes: Array[Byte], times: Long): Unit = {
    row.pointTo(bytes, bytes.length)
    gathering.add(g, arguments(row), times)
  }
  /** The one row, then what was gathered of those that follow it. */
  def before(bytes: Array[Byte], times: Long, g: Gathered): Gathered = {
    val whole = fresh()
    add(whole, bytes, times)
    gathering.merge(whole, g)
    whole
  }
  def merged(first: Gathered, second: Gathered): Gathered = {
    val whole = fresh()
    gathering.merge(whole, first)
    gathering.merge(whole, second)
    whole
  }
  /** What was gathered, without the number of rows: where that is all that differs, the functions do not. */
  def write(g: Gathered): Array[Byte] = {
    val bytes = gathering.write(g)
    Arrays.copyOfRange(bytes, FrameFunctions.Number, bytes.length)
  }
  def read(bytes: Array[Byte]): Gathered = {
    val whole = new Array[Byte](FrameFunctions.Number + bytes.length)
    System.arraycopy(bytes, 0, whole, FrameFunctions.Number, bytes.length)
    gathering.read(whole, 0, whole.length)
  }

  /** The columns that the folds make of what was gathered, as a row's bytes. */
  def columns(g: Gathered): Array[Byte] = {
    var n = 1
    var o = 0
    var at = 0
    var i = 0
    while (i < folds.length) {
      val each = folds(i)
      each.fold.fill(g, n, o, FrameFunctions.NoEntries, filled, at)
      n += each.fold.longs
      o += each.fold.objects
      at += each.slots
      i += 1
    }
    val made = compact(filled)
    Arrays.copyOf(made.getBytes, made.getSizeInBytes)
  }
}

object FrameFunctions {
  private val Number = 8
  private val NoEntries = Array.empty[Entries]
}
