package penstock.kernel.state

import java.util.{Arrays, Comparator}

/** A node above others: its children in order, each with the lowest key that may lie beneath it.
  *
  * Bytes: the level, then `[page number][key length][key]` for each child. The first child takes whatever is lower than
  * the second's, so its key is not written.
  */
private[state] final class Inner(number: Long, stored: Array[Byte], val level: Int) extends Node(number, stored) {
  private[this] var n = 0
  private[this] var firsts = new Array[Array[Byte]](8)
  private[this] var numbers = new Array[Long](8)
  private[this] var nodes = new Array[Node](8)

  def count: Int = n

  /** The lowest key that may lie beneath child `i`; means nothing for the first. */
  def first(i: Int): Array[Byte] = firsts(i)

  /** The page of child `i`, 0 while it has none. */
  def page(i: Int): Long = if (nodes(i) == null) numbers(i) else nodes(i).number

  /** Child `i`, null where it has not been read. */
  def node(i: Int): Node = nodes(i)
  def node_=(i: Int, node: Node): Unit = nodes(i) = node

  /** Lets go of child `i` unless something has happened in it. */
  def forget(i: Int): Unit = if (nodes(i) != null && !nodes(i).touched) {
    numbers(i) = nodes(i).number
    nodes(i) = null
  }

  def add(first: Array[Byte], node: Node): Unit = insert(n, first, node.number, node)

  def insert(i: Int, first: Array[Byte], number: Long, node: Node): Unit = {
    if (n == numbers.length) widen()
    shift(i, i + 1)
    firsts(i) = first
    numbers(i) = number
    nodes(i) = node
  }

  def remove(i: Int): Unit = {
    shift(i + 1, i)
    firsts(n) = null
    nodes(n) = null
  }

  /** The child that `key` lies beneath. */
  def search(key: Array[Byte], order: Comparator[Array[Byte]]): Int = {
    var low = 1
    var high = n - 1
    while (low <= high) {
      val middle = (low + high) >>> 1
      if (Node.compare(order, firsts(middle), key) <= 0) low = middle + 1 else high = middle - 1
    }
    low - 1
  }

  def size: Int = {
    var sum = 1
    var i = 0
    while (i < n) {
      sum += entrySize(i)
      i += 1
    }
    sum
  }

  def bytes: Array[Byte] = {
    val out = new Array[Byte](size)
    out(0) = level.toByte
    var at = 1
    var i = 0
    while (i < n) {
      val key = if (i == 0) Inner.Nothing else firsts(i)
      at = Varint.put(out, Varint.put(out, at, page(i)), key.length)
      System.arraycopy(key, 0, out, at, key.length)
      at += key.length
      i += 1
    }
    out
  }

  /** As a leaf does it; but a piece has at least two children, or the tree would not end. */
  def pour(first: Array[Byte], limit: Int, row: Inner): Unit = {
    var from = 0
    var left = size
    while (left > limit && from < n - 3) {
      var until = from + 2
      var sum = 1 + entrySize(from) + entrySize(from + 1)
      while (until < n - 2 && sum + entrySize(until) <= limit - limit / 4) {
        sum += entrySize(until)
        until += 1
      }
      row.add(if (from == 0) first else firsts(from), piece(from, until))
      left -= sum - 1
      from = until
    }
    row.add(if (from == 0) first else firsts(from), if (from == 0) this else piece(from, n))
  }

  private def piece(from: Int, until: Int): Inner = {
    val part = if (from == 0) new Inner(number, stored, level) else new Inner(0L, null, level)
    part.touched = true
    var i = from
    while (i < until) {
      part.insert(i - from, firsts(i), numbers(i), nodes(i))
      i += 1
    }
    part
  }

  def joined(right: Node, first: Array[Byte]): Node = {
    val all = piece(0, n)
    val other = right.asInstanceOf[Inner]
    var i = 0
    while (i < other.count) {
      all.insert(n + i, if (i == 0) first else other.first(i), other.page(i), other.node(i))
      i += 1
    }
    all
  }

  private def entrySize(i: Int): Int = {
    val key = if (i == 0) 0 else firsts(i).length
    Varint.size(page(i)) + Varint.size(key) + key
  }

  private def widen(): Unit = {
    firsts = Arrays.copyOf[Array[Byte]](firsts, 2 * n)
    numbers = Arrays.copyOf(numbers, 2 * n)
    nodes = Arrays.copyOf[Node](nodes, 2 * n)
  }

  private def shift(from: Int, to: Int): Unit = {
    System.arraycopy(firsts, from, firsts, to, n - from)
    System.arraycopy(numbers, from, numbers, to, n - from)
    System.arraycopy(nodes, from, nodes, to, n - from)
    n += to - from
  }
}

private[state] object Inner {
  private val Nothing = new Array[Byte](0)

  def apply(number: Long, bytes: Array[Byte]): Inner = {
    val inner = new Inner(number, bytes, bytes(0))
    var at = 1
    while (at < bytes.length) {
      val child = Varint.get(bytes, at)
      at += Varint.size(child)
      val length = Varint.get(bytes, at).toInt
      at += Varint.size(length)
      inner.insert(inner.count, Arrays.copyOfRange(bytes, at, at + length), child, null)
      at += length
    }
    inner
  }
}
