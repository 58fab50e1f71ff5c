package penstock.kernel.engine

import java.util.Arrays
import org.apache.spark.unsafe.Platform

/** What a window keeps for a row: `[tally]`, then for each frame two sections, `[length 4][bytes]` each.
  *
  * The first is what was gathered up to and with the row, where the frame runs on from row to row, else it is empty; the second
  * the columns that were given out, as `Runs`.
  */
object WindowRow {
  private val Base = Platform.BYTE_ARRAY_OFFSET

  def fresh(tally: Array[Byte], frames: Int): Array[Byte] = Arrays.copyOf(tally, tally.length + frames * 8)
  def withTally(kept: Array[Byte], tally: Array[Byte]): Array[Byte] = {
    val sections = Tally.length(kept)
    val bytes = Arrays.copyOf(tally, tally.length + kept.length - sections)
    System.arraycopy(kept, sections, bytes, tally.length, kept.length - sections)
    bytes
  }
  def gathered(frame: Int): Int = 2 * frame
  def shown(frame: Int): Int = 2 * frame + 1

  def section(kept: Array[Byte], i: Int): Array[Byte] = {
    val at = placeOf(kept, i)
    Arrays.copyOfRange(kept, at + 4, at + 4 + lengthAt(kept, at))
  }
  def sectionIs(kept: Array[Byte], i: Int, bytes: Array[Byte]): Boolean = {
    val at = placeOf(kept, i)
    Arrays.equals(kept, at + 4, at + 4 + lengthAt(kept, at), bytes, 0, bytes.length)
  }
  def withSection(kept: Array[Byte], i: Int, bytes: Array[Byte]): Array[Byte] = {
    val at = placeOf(kept, i)
    val rest = at + 4 + lengthAt(kept, at)
    val made = new Array[Byte](at + 4 + bytes.length + kept.length - rest)
    System.arraycopy(kept, 0, made, 0, at)
    Platform.putInt(made, Base + at, bytes.length)
    System.arraycopy(bytes, 0, made, at + 4, bytes.length)
    System.arraycopy(kept, rest, made, at + 4 + bytes.length, kept.length - rest)
    made
  }

  private def placeOf(kept: Array[Byte], i: Int): Int = {
    var at = Tally.length(kept)
    var left = i
    while (left > 0) {
      at += 4 + lengthAt(kept, at)
      left -= 1
    }
    at
  }
  private def lengthAt(kept: Array[Byte], at: Int): Int = Platform.getInt(kept, Base + at)
}
