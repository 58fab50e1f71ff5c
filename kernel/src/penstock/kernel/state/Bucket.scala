package penstock.kernel.state

import java.util.Arrays

import org.apache.spark.unsafe.Platform

/** A page that many keys share, in memory from its first use until the slot is closed.
  *
  * Bytes: the number of entries n, n hashes in unsigned order, n ends of entries counted from the first entry's beginning, all
  * of four bytes, little-endian; then the entries in the order of hash and key. A key is found by binary search in the
  * bytes; what is not touched is only ever copied.
  */
private[state] final class Bucket(pages: Pages, val number: Int, val base: Array[Byte]) {
  private[this] val count = if (base == null) 0 else Platform.getInt(base, Platform.BYTE_ARRAY_OFFSET)
  private[this] val start = 4 + 8 * count
  private[this] var touched: Array[KeyState] = null // by index
  private[this] var fresh: Fresh = null
  private[this] var added: Array[KeyState] = Bucket.None // what remains of fresh after settle, in order

  private[this] var patches = 0
  private[this] var encodings = 0

  /** What `settle` has found: changes of the number of keys, of their weight, of the bytes of all entries. */
  var moreKeys = 0
  var moreWeight = 0L
  private[this] var moreBytes = 0

  def state(key: Key): KeyState = {
    val hash = (key.hash >>> 32).toInt
    val i = search(hash, key)
    if (i >= 0) stateAt(i)
    else {
      if (fresh == null) fresh = new Fresh
      fresh.state(pages, hash, key)
    }
  }

  private def stateAt(i: Int): KeyState = {
    if (touched == null) touched = new Array[KeyState](count)
    if (touched(i) == null) touched(i) = new KeyState(pages, hashAt(i), base, entryFrom(i), entryUntil(i))
    touched(i)
  }

  private def search(hash: Int, key: Key): Int = {
    val unsigned = hash + Int.MinValue
    var low = 0
    var high = count - 1
    while (low <= high) {
      val middle = (low + high) >>> 1
      val other = hashAt(middle) + Int.MinValue
      if (other < unsigned) low = middle + 1
      else if (other > unsigned) high = middle - 1
      else {
        val sign = compareKey(middle, key)
        if (sign == 0) return middle
        if (sign < 0) low = middle + 1 else high = middle - 1
      }
    }
    -1
  }

  private def compareKey(i: Int, key: Key): Int = {
    val at = entryFrom(i)
    val length = Varint.get(base, at).toInt
    val from = at + Varint.size(length)
    Arrays.compareUnsigned(base, from, from + length, key.bytes, key.offset, key.offset + key.length)
  }

  private def hashAt(i: Int): Int = Platform.getInt(base, Platform.BYTE_ARRAY_OFFSET + 4 + 4 * i)
  private def entryUntil(i: Int): Int = start + Platform.getInt(base, Platform.BYTE_ARRAY_OFFSET + 4 + 4 * (count + i))
  private def entryFrom(i: Int): Int = if (i == 0) start else entryUntil(i - 1)

  /** Visits every key that exists. */
  def foreach(visit: (Key, State) => Unit): Unit = {
    var i = 0
    while (i < count) {
      val state = stateAt(i)
      if (!state.isEmpty) visit(state.key, state)
      i += 1
    }
    if (fresh != null) fresh.sorted().foreach(state => if (!state.isEmpty) visit(state.key, state))
  }

  /** Nothing but values was read: the page can be forgotten. */
  def onlyRead: Boolean = {
    var clean = fresh == null
    var i = 0
    while (clean && touched != null && i < count) {
      clean = touched(i) == null || touched(i).onlyRead
      i += 1
    }
    clean
  }

  /** Settles the touched keys in their order. */
  def settle(): Unit = {
    var i = 0
    if (touched != null) while (i < count) {
      val state = touched(i)
      if (state != null) settle(state, entryUntil(i) - entryFrom(i))
      i += 1
    }
    if (fresh != null) {
      val states = fresh.sorted()
      i = 0
      while (i < states.length) {
        settle(states(i), 0)
        i += 1
      }
      added = states.filter(state => !state.same)
    }
  }

  private def settle(state: KeyState, before: Int): Unit = {
    state.settle()
    if (state.patched) patches += 1
    else if (!state.same) {
      val now = state.newLength
      encodings += 1
      moreBytes += now - before
      moreWeight += weight(now) - weight(before)
      moreKeys += (if (now == 0) -1 else if (before == 0) 1 else 0)
    }
  }

  /** What an entry counts for when the number of buckets is chosen: a giant key shall not give hundreds of them. */
  private def weight(length: Int): Int = if (length == 0) 0 else math.min(8 + length, pages.limit)

  def changed: Boolean = patches + encodings > 0

  /** The page as it has become; null where no key is left. */
  def bytes: Array[Byte] =
    if (encodings == 0) patchedBytes
    else if (count + moreKeys == 0) null
    else {
      val page = new PageBytes(count + moreKeys, 4 + 8 * (count + moreKeys) + (if (base == null) 0 else base.length - start) + moreBytes)
      pour(page)
      page.bytes
    }

  private def patchedBytes: Array[Byte] = {
    val page = base.clone
    var i = 0
    while (i < count) {
      val state = touched(i)
      if (state != null && state.patched) state.patch(page)
      i += 1
    }
    page
  }

  /** Hands out every entry that is left, in order. */
  def pour(out: EntrySink): Unit = {
    var i = 0
    var j = 0
    while (i < count || j < added.length) {
      if (j == added.length || (i < count && before(i, added(j)))) {
        val state = if (touched == null) null else touched(i)
        if (state == null || state.same) out.add(hashAt(i), base, entryFrom(i), entryUntil(i))
        else if (!state.gone) out.add(hashAt(i), state.entry, 0, state.entry.length)
        i += 1
      } else {
        out.add(added(j).hash, added(j).entry, 0, added(j).entry.length)
        j += 1
      }
    }
  }

  private def before(i: Int, state: KeyState): Boolean = {
    val order = Integer.compareUnsigned(hashAt(i), state.hash)
    order < 0 || (order == 0 && compareKey(i, state.key) < 0)
  }
}

private[state] object Bucket {
  private val None = new Array[KeyState](0)

  /** Which of `n` buckets a hash belongs to: that of its low bits; while there are not so many, one bit less. */
  def of(hash: Int, n: Int): Int = {
    val top = Integer.highestOneBit(n)
    val long = hash & (2 * top - 1)
    if (long < n) long else long & (top - 1)
  }
}

/** Takes entries of buckets. */
private[state] abstract class EntrySink {
  def add(hash: Int, bytes: Array[Byte], from: Int, until: Int): Unit
}

/** The bytes of a bucket with `count` entries, which are added in order. */
private[state] final class PageBytes(count: Int, size: Int) extends EntrySink {
  val bytes = new Array[Byte](size)
  private[this] val start = 4 + 8 * count
  private[this] var n = 0
  private[this] var at = start

  Platform.putInt(bytes, Platform.BYTE_ARRAY_OFFSET, count)

  def add(hash: Int, entry: Array[Byte], from: Int, until: Int): Unit = {
    System.arraycopy(entry, from, bytes, at, until - from)
    at += until - from
    Platform.putInt(bytes, Platform.BYTE_ARRAY_OFFSET + 4 + 4 * n, hash)
    Platform.putInt(bytes, Platform.BYTE_ARRAY_OFFSET + 4 + 4 * (count + n), at - start)
    n += 1
  }
}
