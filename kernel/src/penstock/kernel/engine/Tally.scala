package penstock.kernel.engine

import org.apache.spark.unsafe.Platform

/** How often a row is there, the stamp and place of its last change, and where it is counted, how many partners it has: 24 or 32 bytes. */
object Tally {
  private val Base = Platform.BYTE_ARRAY_OFFSET
  def of(weight: Long, stamp: Long, place: Long, matches: Long = -1): Array[Byte] = {
    val bytes = new Array[Byte](if (matches < 0) 24 else 32)
    Platform.putLong(bytes, Base, weight)
    Platform.putLong(bytes, Base + 8, stamp)
    Platform.putLong(bytes, Base + 16, place)
    if (matches >= 0) Platform.putLong(bytes, Base + 24, matches)
    bytes
  }
  def weight(tally: Array[Byte]): Long = Platform.getLong(tally, Base)
  def stamp(tally: Array[Byte]): Long = Platform.getLong(tally, Base + 8)
  def place(tally: Array[Byte]): Long = Platform.getLong(tally, Base + 16)
  def matches(tally: Array[Byte]): Long = Platform.getLong(tally, Base + 24)
  /** The tally with another number of partners. */
  def matched(tally: Array[Byte], matches: Long): Array[Byte] = of(weight(tally), stamp(tally), place(tally), matches)
}
