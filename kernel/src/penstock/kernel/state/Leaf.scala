package penstock.kernel.state

import java.util.{Arrays, Comparator}

/** A leaf of a collection's tree: entries in order; the whole collection where it lies in the entry of its key.
  *
  * Bytes: a zero, then `[key length][value length][key][value]` for each entry. Entries are found by their place in the
  * bytes that were read (`base`); keys become arrays when the comparator needs them, values when they are asked for.
  */
private[state] final class Leaf private (
    number: Long,
    stored: Array[Byte],
    base: Array[Byte],
    private[this] var places: Array[Int], // of the entry in base, -1 for an entry that is not there
    private[this] var keys: Array[Array[Byte]], // null: still in base
    private[this] var values: Array[Array[Byte]], // null: still in base
    private[this] var n: Int
) extends Node(number, stored) {
  private[this] var entryBytes = 0

  /** It was cut off its left neighbour in memory; they are one until the slot is closed. */
  var continues = false

  def this(number: Long, stored: Array[Byte], base: Array[Byte], from: Int, until: Int) = {
    this(number, stored, base, Leaf.places(base, from, until), null, null, 0)
    n = places.length
    keys = new Array[Array[Byte]](n)
    values = new Array[Array[Byte]](n)
    entryBytes = until - from
  }

  def level: Int = 0
  def count: Int = n
  def size: Int = 1 + entryBytes

  def key(i: Int): Array[Byte] = {
    if (keys(i) == null) keys(i) = Arrays.copyOfRange(base, keyAt(i), keyAt(i) + keyLength(i))
    keys(i)
  }

  /** The key for a caller: one that is not remembered here, so that a long walk leaves no arrays behind. */
  def keyCopy(i: Int): Array[Byte] =
    if (keys(i) != null) keys(i) else Arrays.copyOfRange(base, keyAt(i), keyAt(i) + keyLength(i))

  def value(i: Int): Array[Byte] =
    if (values(i) != null) values(i)
    else {
      val from = keyAt(i) + keyLength(i)
      Arrays.copyOfRange(base, from, from + valueLength(i))
    }

  /** Where `key` is, or where it would be as `-1 - i`. */
  def search(key: Array[Byte], order: Comparator[Array[Byte]]): Int = {
    var low = 0
    var high = n - 1
    while (low <= high) {
      val middle = (low + high) >>> 1
      val sign = compare(middle, key, order)
      if (sign == 0) return middle
      if (sign < 0) low = middle + 1 else high = middle - 1
    }
    -1 - low
  }

  private def compare(i: Int, key: Array[Byte], order: Comparator[Array[Byte]]): Int =
    if (order == null && keys(i) == null) {
      val from = keyAt(i)
      Arrays.compareUnsigned(base, from, from + keyLength(i), key, 0, key.length)
    } else Node.compare(order, this.key(i), key)

  /** Whether the value of entry `i` was another one. */
  def update(i: Int, value: Array[Byte]): Boolean = {
    val old = valueLength(i)
    val same = values(i) == null && old == value.length && {
      val from = keyAt(i) + keyLength(i)
      Arrays.equals(base, from, from + old, value, 0, old)
    }
    if (!same) {
      values(i) = value
      entryBytes += value.length + Varint.size(value.length) - old - Varint.size(old)
    }
    !same
  }

  def insert(i: Int, key: Array[Byte], value: Array[Byte]): Unit = {
    if (n == places.length) widen()
    shift(i, i + 1)
    places(i) = -1
    keys(i) = key
    values(i) = value
    entryBytes += entrySize(i)
  }

  def remove(i: Int): Unit = {
    entryBytes -= entrySize(i)
    shift(i + 1, i)
    keys(n) = null
    values(n) = null
  }

  /** Cuts off the upper half, in memory. */
  def halve(): Leaf = {
    val right = slice(n / 2, n, 0L, null)
    right.continues = true
    right.touched = true
    n /= 2
    Arrays.fill(keys.asInstanceOf[Array[AnyRef]], n, keys.length, null)
    Arrays.fill(values.asInstanceOf[Array[AnyRef]], n, values.length, null)
    entryBytes -= right.size - 1
    right
  }

  /** Takes back what `halve` cut off. */
  def append(right: Leaf): Unit = {
    while (places.length < n + right.count) widen()
    right.copyTo(places, keys, values, n)
    n += right.count
    entryBytes += right.size - 1
  }

  /** Pieces of three quarters of a page while more than a page is left, so that entries added at one end fill their pages. */
  def pour(first: Array[Byte], limit: Int, row: Inner): Unit = {
    var from = 0
    var left = size
    while (left > limit && from < n - 1) {
      var until = from + 1
      var sum = 1 + entrySize(from)
      while (until < n && sum + entrySize(until) <= limit - limit / 4) {
        sum += entrySize(until)
        until += 1
      }
      row.add(lowest(from, first), piece(from, until))
      left -= sum - 1
      from = until
    }
    row.add(lowest(from, first), if (from == 0) this else piece(from, n))
  }

  private def lowest(i: Int, first: Array[Byte]): Array[Byte] = if (i == 0) first else key(i)

  private def piece(from: Int, until: Int): Leaf =
    if (from == 0) slice(from, until, number, stored) else slice(from, until, 0L, null)

  private def slice(from: Int, until: Int, number: Long, stored: Array[Byte]): Leaf = {
    val part = new Leaf(number, stored, base, Arrays.copyOfRange(places, from, until),
      Arrays.copyOfRange[Array[Byte]](keys, from, until), Arrays.copyOfRange[Array[Byte]](values, from, until), until - from)
    part.touched = true
    part.measure()
    part
  }

  def joined(right: Node, first: Array[Byte]): Node = {
    val all = new Array[Byte](size + right.size - 1)
    write(all, 1)
    right.asInstanceOf[Leaf].write(all, size)
    val leaf = new Leaf(number, stored, all, 1, all.length)
    leaf.touched = true
    leaf
  }

  def bytes: Array[Byte] = {
    val page = new Array[Byte](size)
    write(page, 1)
    page
  }

  /** Writes the entries without the leading zero; neighbours that stand side by side in `base` are copied together. */
  def write(out: Array[Byte], start: Int): Unit = {
    var at = start
    var i = 0
    while (i < n) {
      if (places(i) >= 0 && values(i) == null) {
        val from = places(i)
        var until = from
        while (i < n && places(i) == until && values(i) == null) {
          until += entrySize(i)
          i += 1
        }
        System.arraycopy(base, from, out, at, until - from)
        at += until - from
      } else {
        at = writeEntry(i, out, at)
        i += 1
      }
    }
  }

  private def writeEntry(i: Int, out: Array[Byte], start: Int): Int = {
    val k = key(i)
    val v = values(i)
    val at = Varint.put(out, Varint.put(out, start, k.length), v.length)
    System.arraycopy(k, 0, out, at, k.length)
    System.arraycopy(v, 0, out, at + k.length, v.length)
    at + k.length + v.length
  }

  private def measure(): Unit = {
    entryBytes = 0
    var i = 0
    while (i < n) {
      entryBytes += entrySize(i)
      i += 1
    }
  }

  private def keyLength(i: Int): Int = if (keys(i) != null) keys(i).length else Varint.get(base, places(i)).toInt

  private def valueLength(i: Int): Int =
    if (values(i) != null) values(i).length
    else {
      val at = places(i)
      Varint.get(base, at + Varint.size(Varint.get(base, at))).toInt
    }

  /** Where the key of an entry of `base` begins. */
  private def keyAt(i: Int): Int = {
    val lengths = places(i)
    val values = lengths + Varint.size(Varint.get(base, lengths))
    values + Varint.size(Varint.get(base, values))
  }

  private def entrySize(i: Int): Int = {
    val k = keyLength(i)
    val v = valueLength(i)
    Varint.size(k) + Varint.size(v) + k + v
  }

  private def widen(): Unit = {
    places = Arrays.copyOf(places, 2 * places.length max 4)
    keys = Arrays.copyOf[Array[Byte]](keys, places.length)
    values = Arrays.copyOf[Array[Byte]](values, places.length)
  }

  private def shift(from: Int, to: Int): Unit = {
    System.arraycopy(places, from, places, to, n - from)
    System.arraycopy(keys, from, keys, to, n - from)
    System.arraycopy(values, from, values, to, n - from)
    n += to - from
  }

  private def copyTo(p: Array[Int], k: Array[Array[Byte]], v: Array[Array[Byte]], at: Int): Unit = {
    System.arraycopy(places, 0, p, at, n)
    System.arraycopy(keys, 0, k, at, n)
    System.arraycopy(values, 0, v, at, n)
  }
}

private[state] object Leaf {

  /** More entries than this are cut in two in memory: an array is slow to insert into where it is long. */
  final val Crowd = 512

  private val Nothing = new Array[Byte](0)

  def empty: Leaf = new Leaf(0L, null, Nothing, 0, 0)

  private def places(base: Array[Byte], from: Int, until: Int): Array[Int] = {
    var found = new Array[Int](math.min(64, (until - from) / 2))
    var n = 0
    var at = from
    while (at < until) {
      if (n == found.length) found = Arrays.copyOf(found, 2 * n)
      found(n) = at
      n += 1
      val k = Varint.get(base, at)
      at += Varint.size(k)
      val v = Varint.get(base, at)
      at += Varint.size(v) + (k + v).toInt
    }
    if (n == found.length) found else Arrays.copyOf(found, n)
  }
}
