package penstock.kernel.state

import java.util.{Arrays, LinkedHashMap => JavaMap}

/** A pile while the slot is open.
  *
  * In: what the key's entry holds of it at `at` (0: nothing), behind the number of the collection:
  * `[weight of all][length][entries]`, or where it has pages, `[newest page][its length][entries when last summed up][entries since, in pages][weight of all][length][entries]`.
  * A page is `[page before, 0 in the oldest][entries]`. State: what has been added in this batch.
  */
private[state] final class PagedPile(pages: Pages, sum: Sum, bytes: Array[Byte], at: Int, paged: Boolean) extends Pile {
  private[this] var newest = 0L
  private[this] var newestLength = 0
  private[this] var summed = 0L
  private[this] var since = 0L
  private[this] var stored = PackedEntries.None
  private[this] val added = new PackedEntries
  private[this] var weight = 0L
  private[this] var takenBack = false
  private[this] var cleared = false

  if (at != 0) read()
  private[this] val stack = new PileStack(pages, newest)

  private def read(): Unit = {
    var next = at
    def number(): Long = {
      val n = Varint.get(bytes, next)
      next += Varint.size(n)
      n
    }
    if (paged) {
      newest = number()
      newestLength = number().toInt
      summed = number()
      since = number()
    }
    weight = number()
    val length = number().toInt
    stored = new PackedEntries(bytes, next, next + length)
  }

  def add(key: Array[Byte], value: Array[Byte], more: Long): Unit = {
    added.add(key, value)
    weight += more
    takenBack |= more < 0
  }

  def walk: Cursor = new PileWalk(stored, added, if (newest == 0L) PileStack.Empty else stack)

  def isEmpty: Boolean = weight == 0L

  def clear(): Unit = {
    if (newest != 0L) stack.foreach((number, _) => pages.drop(number))
    cleared = at != 0
    newest = 0L
    newestLength = 0
    summed = 0L
    since = 0L
    weight = 0L
    stored = PackedEntries.None
    added.clear()
  }

  def changed: Boolean = cleared || added.length > 0

  /** Decides what lies in the entry and what in pages. */
  def settle(): Unit = if (added.length > 0) {
    stored = stored.and(added)
    added.clear()
    if ((newest == 0L && takenBack) || stored.length > pages.limit / 4) stored = stored.summed(sum)
    if (newest != 0L && takenBack && weight == 0L) clear()
    else if (newest != 0L && takenBack && summed + since > 2 * weight + PagedPile.Few) sumUp()
    else if (stored.length > pages.limit / 4) spill(stored.count)
  }

  private def spill(count: Int): Unit =
    if (newest != 0L && since + count > summed + PagedPile.Few) sumUp()
    else {
      if (newest == 0L) summed = count else since += count
      if (newest != 0L && newestLength + stored.length <= pages.limit) extend() else lay(stored)
      stored = PackedEntries.None
    }

  private def extend(): Unit = {
    val page = stack.page(0, null)
    val longer = Arrays.copyOf(page, page.length + stored.length)
    stored.copyTo(longer, page.length)
    pages.save(newest, longer)
    newestLength = longer.length
  }

  /** Lays pages with `entries` on top. */
  private def lay(entries: PackedEntries): Unit = {
    var from = entries.from
    while (from < entries.until) {
      val until = entries.cut(from, pages.limit - Varint.size(newest))
      val page = new Array[Byte](Varint.size(newest) + until - from)
      System.arraycopy(entries.bytes, from, page, Varint.put(page, 0, newest), until - from)
      newest = pages.add(page)
      newestLength = page.length
      from = until
    }
  }

  /** Sums up all of it, in as many passes as keep the memory small, and writes it anew. */
  private def sumUp(): Unit = {
    val passes = ((summed + since + stored.count) / PagedPile.Many + 1).toInt
    val results = Iterator.range(0, passes).map(pass => PackedEntries.of(summedUp(pass, passes))).toArray
    stack.foreach((number, _) => pages.drop(number))
    newest = 0L
    newestLength = 0
    stored = PackedEntries.None
    summed = results.map(_.count.toLong).sum
    since = 0L
    if (results.length == 1 && results(0).length <= pages.limit / 8) {
      stored = results(0)
      summed = 0L
    } else results.foreach(lay)
  }

  /** The entries whose sub-keys fall into `pass`, summed up, in the order in which they first came. */
  private def summedUp(pass: Int, passes: Int): JavaMap[SubKey, Array[Byte]] = {
    val found = new JavaMap[SubKey, Array[Byte]]
    if (newest != 0L) stack.fromOldest(page => PagedPile.entries(page).sumInto(found, sum, pass, passes))
    stored.sumInto(found, sum, pass, passes)
    added.sumInto(found, sum, pass, passes)
    found
  }

  /** How many bytes it takes in the key's entry behind the number of the collection; 0: it is empty. */
  def size: Int = {
    val here = Varint.size(weight) + Varint.size(stored.length) + stored.length
    if (newest != 0L) Varint.size(newest) + Varint.size(newestLength) + Varint.size(summed) + Varint.size(since) + here
    else if (stored.length == 0) 0
    else here
  }

  def hasPages: Boolean = newest != 0L

  def write(out: Array[Byte], start: Int): Unit = {
    var at = start
    if (newest != 0L) Seq(newest, newestLength.toLong, summed, since).foreach(n => at = Varint.put(out, at, n))
    at = Varint.put(out, at, weight)
    stored.copyTo(out, Varint.put(out, at, stored.length))
  }
}

private[state] object PagedPile {

  /** So many entries may come before they are summed up, however few there were. */
  final val Few = 128

  /** Entries that are summed up in memory at once. */
  final val Many = 500000

  def entries(page: Array[Byte]): PackedEntries = new PackedEntries(page, Varint.size(Varint.get(page, 0)), page.length)

  /** Where the part of an entry ends that belongs to a pile and begins at `at`. */
  def end(bytes: Array[Byte], at: Int, paged: Boolean): Int = {
    var next = at
    var skipped = if (paged) 5 else 1
    while (skipped > 0) {
      next += Varint.size(Varint.get(bytes, next))
      skipped -= 1
    }
    val length = Varint.get(bytes, next)
    next + Varint.size(length) + length.toInt
  }
}
