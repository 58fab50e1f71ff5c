package penstock.kernel.state

import java.util.Arrays

import scala.collection.mutable.ArrayBuffer

/** The pages of a pile as they were stored, from the newest to the oldest, read once unless there are very many. */
private[state] final class PileStack(pages: Pages, newest: Long) {
  private[this] val read = new ArrayBuffer[Array[Byte]]

  /** Page `i`, which lies under the page `above` (null: it is the newest); null where there is none. */
  def page(i: Int, above: Array[Byte]): Array[Byte] =
    if (i < read.length) read(i)
    else {
      val number = if (above == null) newest else Varint.get(above, 0)
      val page = if (number == 0L) null else pages.own(number)
      if (page != null && i < Tree.Crowd) read += page
      page
    }

  def foreach(visit: (Long, Array[Byte]) => Unit): Unit = {
    var number = newest
    var i = 0
    var bytes: Array[Byte] = null
    while (number != 0L) {
      bytes = page(i, bytes)
      visit(number, bytes)
      number = Varint.get(bytes, 0)
      i += 1
    }
  }

  def fromOldest(visit: Array[Byte] => Unit): Unit = {
    val numbers = new ArrayBuffer[Long]
    foreach((number, _) => numbers += number)
    var i = numbers.length - 1
    while (i >= 0) {
      visit(if (i < read.length) read(i) else pages.own(numbers(i)))
      i -= 1
    }
  }
}

private[state] object PileStack {
  val Empty = new PileStack(null, 0L)
}

/** First what lies in the entry and what was added, then the pages, from the newest to the oldest. */
private[state] final class PileWalk(stored: PackedEntries, added: PackedEntries, stack: PileStack) extends Cursor {
  private[this] var section = 0
  private[this] var bytes = stored.bytes
  private[this] var at = stored.from
  private[this] var until = stored.until
  private[this] var keyFrom = 0
  private[this] var keyUntil = 0

  def next(): Boolean = {
    while (at >= until && turn()) {}
    val has = at < until
    if (has) {
      val k = Varint.get(bytes, at).toInt
      val lengths = at + Varint.size(k)
      val v = Varint.get(bytes, lengths).toInt
      keyFrom = lengths + Varint.size(v)
      keyUntil = keyFrom + k
      at = keyUntil + v
    }
    has
  }

  /** Goes to the next section; false where there is none. */
  private def turn(): Boolean = {
    val page = if (section == 0) null else stack.page(section - 1, if (section == 1) null else bytes)
    val entries = if (section == 0) added else if (page == null) null else PagedPile.entries(page)
    if (entries != null) {
      section += 1
      bytes = entries.bytes
      at = entries.from
      until = entries.until
    }
    entries != null
  }

  def key: Array[Byte] = Arrays.copyOfRange(bytes, keyFrom, keyUntil)
  def value: Array[Byte] = Arrays.copyOfRange(bytes, keyUntil, at)
  def value_=(bytes: Array[Byte]): Unit = throw new UnsupportedOperationException("a pile's entries are not replaced")
}
