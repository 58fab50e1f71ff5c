package penstock.kernel.state

import java.util.Arrays

/** One key of a bucket that was touched in this batch.
  *
  * In: its entry, `bytes(from until until)`; for a new key only the head of one. An entry is `[key length][key][tag][value]
  * [collections]`. Bits 0 and 1 of the tag: 0 no value, 1 value here, 2 value in an own page, whose number stands here;
  * bit 2: collections follow, and the value has its length before it. A collection is `[2 i]` or, in pages, `[2 i + 1]`,
  * then `[length][leaf]` or `[root page]`; what a pile has there, `PagedPile` says.
  */
private[state] final class KeyState(pages: Pages, val hash: Int, bytes: Array[Byte], val from: Int, val until: Int) extends State {
  private[this] val length = Varint.get(bytes, from).toInt
  private[this] val start = from + Varint.size(length)
  private[this] val tag = if (start + length < until) bytes(start + length) else 0
  private[this] var valueFrom = start + length + 1
  private[this] var valueUntil = until
  private[this] var assigned = false
  private[this] var current: Array[Byte] = null
  private[this] var large: Array[Byte] = null // the own page of the value, as it was read
  private[this] var lists: Array[Int] = null // where collection i stands in bytes; 0: nowhere
  private[this] var trees: Array[Tree] = null
  private[this] var piles: Array[PagedPile] = null

  /** The new entry after `settle`, null where there is none. */
  private[this] var encoded: Array[Byte] = null
  private[this] var outcome = KeyState.Same

  if ((tag & KeyState.Collections) != 0) findCollections()

  private def findCollections(): Unit = {
    var at = valueFrom
    (tag & KeyState.Value) match {
      case KeyState.Here =>
        val n = Varint.get(bytes, at).toInt
        valueFrom += Varint.size(n)
        at = valueFrom + n
      case KeyState.Own => at += Varint.size(Varint.get(bytes, at))
      case _            =>
    }
    valueUntil = at
    lists = new Array[Int](pages.collections)
    while (at < until) {
      val head = Varint.get(bytes, at)
      lists((head >>> 1).toInt) = at
      at = listEnd(at)
    }
  }

  private def listEnd(at: Int): Int = {
    val head = Varint.get(bytes, at)
    val next = at + Varint.size(head)
    if ((head >>> 1) >= pages.orders.length) PagedPile.end(bytes, next, (head & 1) == 1)
    else {
      val n = Varint.get(bytes, next)
      next + Varint.size(n) + (if ((head & 1) == 0) n.toInt else 0)
    }
  }

  def key: Key = new Key(bytes, start, length, hash.toLong << 32)

  def sameKey(other: Key): Boolean =
    Arrays.equals(bytes, start, start + length, other.bytes, other.offset, other.offset + other.length)

  def compareKey(other: KeyState): Int = compareKey(other.key)

  def compareKey(other: Key): Int =
    Arrays.compareUnsigned(bytes, start, start + length, other.bytes, other.offset, other.offset + other.length)

  def value: Array[Byte] = {
    if (!assigned && current == null) current = (tag & KeyState.Value) match {
      case KeyState.Here => Arrays.copyOfRange(bytes, valueFrom, valueUntil)
      case KeyState.Own =>
        if (large == null) large = pages.own(valuePage)
        large.clone
      case _ => null
    }
    current
  }

  def value_=(bytes: Array[Byte]): Unit = {
    current = bytes
    assigned = true
  }

  private def valuePage: Long = if ((tag & KeyState.Value) == KeyState.Own) Varint.get(bytes, valueFrom) else 0L

  def entries(i: Int): Entries = {
    if (trees == null) trees = new Array[Tree](pages.orders.length)
    if (trees(i) == null) trees(i) = new Tree(pages, pages.orders(i), root(i))
    trees(i)
  }

  def pile(i: Int): Pile = {
    if (piles == null) piles = new Array[PagedPile](pages.sums.length)
    if (piles(i) == null) {
      val at = listAt(pages.orders.length + i)
      val head = if (at == 0) 0L else Varint.get(bytes, at)
      piles(i) = new PagedPile(pages, pages.sums(i), bytes, if (at == 0) 0 else at + Varint.size(head), (head & 1) == 1)
    }
    piles(i)
  }

  /** The pile behind collection `i`, where it was asked for. */
  private def pileOf(i: Int): PagedPile = if (piles == null || i < pages.orders.length) null else piles(i - pages.orders.length)

  private def root(i: Int): Node = {
    val at = listAt(i)
    if (at == 0) Leaf.empty
    else {
      val head = Varint.get(bytes, at)
      val next = at + Varint.size(head)
      val n = Varint.get(bytes, next)
      if ((head & 1) == 1) Node(n, pages.own(n))
      else new Leaf(0L, null, bytes, next + Varint.size(n), next + Varint.size(n) + n.toInt)
    }
  }

  private def listAt(i: Int): Int = if (lists == null) 0 else lists(i)

  def isEmpty: Boolean = {
    var none = if (assigned) current == null else (tag & KeyState.Value) == 0
    var i = 0
    while (none && i < pages.collections) {
      none = isEmpty(i)
      i += 1
    }
    none
  }

  private def isEmpty(i: Int): Boolean =
    if (i >= pages.orders.length) (pileOf(i) == null && listAt(i) == 0) || pile(i - pages.orders.length).isEmpty
    else if (trees == null || trees(i) == null) listAt(i) == 0
    else trees(i).isEmpty

  def clear(): Unit = {
    value_=(null)
    var i = 0
    while (i < pages.orders.length) {
      if (listAt(i) != 0 || (trees != null && trees(i) != null)) entries(i).clear()
      i += 1
    }
    while (i < pages.collections) {
      if (listAt(i) != 0 || pileOf(i) != null) pile(i - pages.orders.length).clear()
      i += 1
    }
  }

  /** Nobody has asked for more than to read the value. */
  def onlyRead: Boolean = !assigned && trees == null && piles == null

  /** Writes what needs pages of its own and decides what becomes of the entry. */
  def settle(): Unit = {
    val lists = listsChanged()
    if (lists || valueChanged) {
      val here = (tag & KeyState.Value) == KeyState.Here
      if (!lists && here && current != null && current.length == valueUntil - valueFrom) outcome = KeyState.Patched
      else {
        encoded = encode()
        if (encoded == null) outcome = if (isNew) KeyState.Same else KeyState.Gone
        else if (!Arrays.equals(bytes, from, until, encoded, 0, encoded.length)) outcome = KeyState.Encoded
      }
    }
  }

  private def listsChanged(): Boolean = {
    var changed = false
    var i = 0
    while (trees != null && i < trees.length) {
      if (trees(i) != null && trees(i).touched && listChanged(i)) changed = true
      i += 1
    }
    i = 0
    while (piles != null && i < piles.length) {
      if (piles(i) != null && piles(i).changed) {
        piles(i).settle()
        changed = true
      }
      i += 1
    }
    changed
  }

  private def listChanged(i: Int): Boolean = {
    trees(i).settle()
    val at = listAt(i)
    val size = listSize(i)
    if (at == 0 || size == 0) size != 0 || at != 0
    else {
      val now = new Array[Byte](size)
      writeList(i, now, 0)
      !Arrays.equals(bytes, at, listEnd(at), now, 0, size)
    }
  }

  private def valueChanged: Boolean = assigned && ((tag & KeyState.Value) match {
    case KeyState.Here =>
      current == null || !Arrays.equals(bytes, valueFrom, valueUntil, current, 0, current.length)
    case KeyState.Own => current == null || large == null || !Arrays.equals(large, current)
    case _            => current != null
  })

  def same: Boolean = outcome == KeyState.Same
  def patched: Boolean = outcome == KeyState.Patched
  def gone: Boolean = outcome == KeyState.Gone
  def isNew: Boolean = tag == 0

  /** How long the entry has become. */
  def newLength: Int = if (encoded != null) encoded.length else if (gone) 0 else until - from

  /** Overwrites the value in a copy of the page that the entry was read from. */
  def patch(page: Array[Byte]): Unit = System.arraycopy(current, 0, page, valueFrom, current.length)

  /** The new entry. */
  def entry: Array[Byte] = {
    if (encoded == null) {
      encoded = Arrays.copyOfRange(bytes, from, until)
      if (patched) System.arraycopy(current, 0, encoded, valueFrom - from, current.length)
    }
    encoded
  }

  /** The entry as it has become; null where nothing is left. */
  private def encode(): Array[Byte] = {
    val listBytes = allListsSize
    val kept = !valueChanged
    val kind =
      if (kept) tag & KeyState.Value
      else if (current == null) 0
      else if (current.length > pages.limit / 4) KeyState.Own
      else KeyState.Here
    val page = if (kept) valuePage else saveValue(kind)
    val valueBytes =
      if (kind == KeyState.Own) Varint.size(page)
      else if (kind == 0) 0
      else if (kept) valueUntil - valueFrom
      else current.length
    if (kind == 0 && listBytes == 0) null
    else {
      val prefix = if (kind == KeyState.Here && listBytes > 0) Varint.size(valueBytes) else 0
      val out = new Array[Byte](start - from + length + 1 + prefix + valueBytes + listBytes)
      System.arraycopy(bytes, from, out, 0, start - from + length)
      var at = start - from + length
      out(at) = (kind | (if (listBytes > 0) KeyState.Collections else 0)).toByte
      at += 1
      if (prefix > 0) at = Varint.put(out, at, valueBytes)
      if (kind == KeyState.Own) Varint.put(out, at, page)
      else if (kind == KeyState.Here && kept) System.arraycopy(bytes, valueFrom, out, at, valueBytes)
      else if (kind == KeyState.Here) System.arraycopy(current, 0, out, at, valueBytes)
      writeLists(out, at + valueBytes)
      out
    }
  }

  /** Brings the own page of the value up to date; returns its number, 0 where it needs none. */
  private def saveValue(kind: Int): Long = {
    val page = valuePage
    if (kind != KeyState.Own) {
      pages.drop(page)
      0L
    } else if (page == 0L) pages.add(current)
    else {
      pages.save(page, current)
      page
    }
  }

  private def allListsSize: Int = {
    var sum = 0
    var i = 0
    while (i < pages.collections) {
      sum += listSize(i)
      i += 1
    }
    sum
  }

  private def writeLists(out: Array[Byte], start: Int): Unit = {
    var at = start
    var i = 0
    while (i < pages.collections) {
      writeList(i, out, at)
      at += listSize(i)
      i += 1
    }
  }

  private def listSize(i: Int): Int =
    if (pileOf(i) != null) {
      val size = pileOf(i).size
      if (size == 0) 0 else Varint.size(2L * i + 1) + size
    } else if (i < pages.orders.length && trees != null && trees(i) != null) {
      val top = trees(i).top
      if (top.number != 0L) Varint.size(2L * i + 1) + Varint.size(top.number)
      else if (top.count == 0) 0
      else Varint.size(2L * i) + Varint.size(top.size - 1) + top.size - 1
    } else if (listAt(i) == 0) 0
    else listEnd(listAt(i)) - listAt(i)

  private def writeList(i: Int, out: Array[Byte], at: Int): Unit =
    if (pileOf(i) != null) {
      if (pileOf(i).size > 0) pileOf(i).write(out, Varint.put(out, at, 2L * i + (if (pileOf(i).hasPages) 1 else 0)))
    } else if (i < pages.orders.length && trees != null && trees(i) != null) {
      val top = trees(i).top
      if (top.number != 0L) Varint.put(out, Varint.put(out, at, 2L * i + 1), top.number)
      else if (top.count > 0)
        top.asInstanceOf[Leaf].write(out, Varint.put(out, Varint.put(out, at, 2L * i), top.size - 1))
    } else if (listAt(i) != 0) System.arraycopy(bytes, listAt(i), out, at, listSize(i))
}

private[state] object KeyState {
  final val Value = 3
  final val Here = 1
  final val Own = 2
  final val Collections = 4

  final val Same = 0
  final val Patched = 1
  final val Encoded = 2
  final val Gone = 3

  /** The head of an entry for a key that has none yet. */
  def head(key: Key): Array[Byte] = {
    val head = new Array[Byte](Varint.size(key.length) + key.length)
    System.arraycopy(key.bytes, key.offset, head, Varint.put(head, 0, key.length), key.length)
    head
  }
}
