package penstock.kernel.engine

import java.nio.ByteBuffer
import penstock.kernel.state.Entries

/** Values in the order of their places, found by value too: collection 0 holds (place, value) -> how often, 1 holds (value, place).
  *
  * Places stand big-endian, so that bytes sort as places do. No value is the beginning of another: rows of the same columns never are.
  */
object Oldest {
  /** A value that came so often at a place. */
  def add(byPlace: Entries, value: Array[Byte], place: Long, times: Long): Unit = Multiset.add(byPlace, first(place, value), times)

  /** Rows come under their place; rows that go take away the oldest equal ones. */
  def change(entries: Array[Entries], value: Array[Byte], place: Long, weight: Long): Unit =
    if (weight > 0) {
      add(entries(0), value, place, weight)
      entries(1).put(last(value, place), Array.emptyByteArray)
    } else takeOldest(entries, value, -weight)

  private def takeOldest(entries: Array[Entries], value: Array[Byte], times: Long): Unit = {
    var left = times
    val cursor = entries(1).from(value)
    while (left > 0 && cursor.next()) {
      val key = cursor.key
      val byPlace = first(ByteBuffer.wrap(key).getLong(key.length - 8) ^ Long.MinValue, value)
      val held = Multiset.count(entries(0).get(byPlace))
      val taken = math.min(left, held)
      Multiset.add(entries(0), byPlace, -taken)
      if (taken == held) entries(1).remove(key)
      left -= taken
    }
  }

  private def first(place: Long, value: Array[Byte]): Array[Byte] =
    ByteBuffer.allocate(8 + value.length).putLong(place ^ Long.MinValue).put(value).array
  private def last(value: Array[Byte], place: Long): Array[Byte] =
    ByteBuffer.allocate(8 + value.length).put(value).putLong(place ^ Long.MinValue).array
}
