package penstock.kernel.engine

import penstock.kernel.state.{Entries, Sum, Varint}

/** How often a row is there, the stamp and place of its last change, and where it is counted, how many partners it has.
  *
  * Four numbers, or three, each in as few bytes as it needs: `docs/formats/state.md`.
  */
object Tally {
  def of(weight: Long, stamp: Long, place: Long, matches: Long = -1): Array[Byte] = {
    val (w, s, p) = (code(weight), code(stamp), code(place))
    val bytes = new Array[Byte](Varint.size(w) + Varint.size(s) + Varint.size(p) + (if (matches < 0) 0 else Varint.size(matches)))
    val at = Varint.put(bytes, Varint.put(bytes, Varint.put(bytes, 0, w), s), p)
    if (matches >= 0) Varint.put(bytes, at, matches)
    bytes
  }
  def weight(tally: Array[Byte]): Long = number(Varint.get(tally, 0))
  def stamp(tally: Array[Byte]): Long = number(Varint.get(tally, skip(tally, 1)))
  def place(tally: Array[Byte]): Long = number(Varint.get(tally, skip(tally, 2)))
  def matches(tally: Array[Byte]): Long = Varint.get(tally, skip(tally, 3))
  /** The tally with another number of partners. */
  def matched(tally: Array[Byte], matches: Long): Array[Byte] = of(weight(tally), stamp(tally), place(tally), matches)

  /** Takes a change into a collection of rows with their tallies; `matches` is -1 where partners are not counted. */
  def count(held: Entries, envelope: Array[Byte], matches: Long = -1): Unit = count(held, Envelope.row(envelope), envelope, matches)

  /** The row is kept under `row`. */
  def count(held: Entries, row: Array[Byte], envelope: Array[Byte], matches: Long): Unit = {
    val old = held.get(row)
    val sum = Envelope.weight(envelope) + (if (old == null) 0 else weight(old))
    if (sum == 0) held.remove(row)
    else if (old != null && isLater(place(old), stamp(old), Envelope.place(envelope), Envelope.stamp(envelope)))
      held.put(row, of(sum, stamp(old), place(old), matches))
    else held.put(row, of(sum, Envelope.stamp(envelope), Envelope.place(envelope), matches))
  }

  /** Of two changes of a row the one at the later place counts, at one place the one with the smaller stamp. */
  def isLater(place: Long, stamp: Long, otherPlace: Long, otherStamp: Long): Boolean =
    place > otherPlace || (place == otherPlace && stamp < otherStamp)

  /** How long the tally without partners is at the beginning of `bytes`. */
  def length(bytes: Array[Byte]): Int = skip(bytes, 3)

  /** Where number `i` begins. */
  private def skip(tally: Array[Byte], i: Int): Int = {
    var at = 0
    var left = i
    while (left > 0) {
      while (tally(at) < 0) at += 1
      at += 1
      left -= 1
    }
    at
  }

  /** A sign needs a bit: 0 is the least of all numbers, which stands for "none"; then 0, -1, 1, -2, ... */
  private def code(n: Long): Long = if (n == Long.MinValue) 0L else ((n << 1) ^ (n >> 63)) + 1
  private def number(code: Long): Long = if (code == 0L) Long.MinValue else ((code - 1) >>> 1) ^ -((code - 1) & 1)
}

/** The tally of a row that changed twice. Nothing is left of a row that is there no more. */
object TallySum extends Sum {
  override def apply(older: Array[Byte], newer: Array[Byte]): Array[Byte] = {
    val weight = Tally.weight(older) + Tally.weight(newer)
    val last = if (Tally.isLater(Tally.place(older), Tally.stamp(older), Tally.place(newer), Tally.stamp(newer))) older else newer
    if (weight == 0) null else Tally.of(weight, Tally.stamp(last), Tally.place(last))
  }
}
