package penstock.kernel.state

import java.util.{Arrays, Comparator}

/** One collection of one key while the slot is open.
  *
  * In: its bytes out of the key's entry, or the number of its root page. State: the nodes that were read or made; a leaf
  * that grows beyond measure is cut in memory, otherwise the tree keeps its shape until `settle` writes it.
  */
private[state] final class Tree(pages: Pages, order: Comparator[Array[Byte]], private[this] var root: Node) extends Entries {

  /** The tree had pages when the batch began. */
  private[this] val paged = root.number != 0L

  /** Counts entries that came or went: cursors look whether their place is still right. */
  var moves = 0
  private[this] var loaded = 0

  def top: Node = root

  /** So many nodes were read that a walk lets go of the leaves that it leaves behind, though they may be read again. */
  def crowded: Boolean = loaded > Tree.Crowd

  /** An entry may have changed since the batch began. */
  def touched: Boolean = root.touched

  def get(key: Array[Byte]): Array[Byte] = {
    val leaf = leafOf(key)
    val i = leaf.search(key, order)
    if (i < 0) null else leaf.value(i)
  }

  def put(key: Array[Byte], value: Array[Byte]): Unit = {
    if (value == null) throw new NullPointerException("an entry's value must not be null; remove the entry instead")
    var parent: Inner = null
    var at = 0
    var node = root
    while (node.level > 0) {
      node.touched = true
      parent = node.asInstanceOf[Inner]
      at = parent.search(key, order)
      node = child(parent, at)
    }
    val leaf = node.asInstanceOf[Leaf]
    val i = leaf.search(key, order)
    if (i >= 0) {
      if (leaf.update(i, value)) {
        leaf.touched = true
        if (crowded) moves += 1 // a cursor may hold a leaf that was let go and has been read again
      }
    } else {
      leaf.insert(-1 - i, key, value)
      leaf.touched = true
      moves += 1
      if (leaf.count > Leaf.Crowd) halve(leaf, parent, at)
    }
  }

  private def halve(leaf: Leaf, parent: Inner, at: Int): Unit = {
    val right = leaf.halve()
    var above = parent
    if (above == null) {
      above = new Inner(0L, null, 1)
      above.touched = true
      above.add(null, leaf)
      root = above
    }
    above.insert(at + 1, right.key(0), 0L, right)
  }

  def remove(key: Array[Byte]): Boolean = {
    val leaf = leafOf(key)
    val i = leaf.search(key, order)
    if (i >= 0) {
      touch(key)
      leaf.remove(i)
      moves += 1
    }
    i >= 0
  }

  def isEmpty: Boolean = if (root.level == 0) root.count == 0 else !new Walk(this, order, up = true).next()

  def firstKey: Array[Byte] = end(up = true)
  def lastKey: Array[Byte] = end(up = false)

  private def end(up: Boolean): Array[Byte] = {
    val walk = new Walk(this, order, up)
    if (walk.next()) walk.key else null
  }

  def ascending: Cursor = new Walk(this, order, up = true)
  def descending: Cursor = new Walk(this, order, up = false)
  def from(key: Array[Byte]): Cursor = new Walk(this, order, up = true).startingAt(key)
  def after(key: Array[Byte]): Cursor = new Walk(this, order, up = true).startingBeyond(key)
  def to(key: Array[Byte]): Cursor = new Walk(this, order, up = false).startingAt(key)
  def before(key: Array[Byte]): Cursor = new Walk(this, order, up = false).startingBeyond(key)

  def clear(): Unit = {
    drop(root)
    root = Leaf.empty
    root.touched = true
    moves += 1
  }

  private def drop(node: Node): Unit = {
    if (node.level > 0) {
      val inner = node.asInstanceOf[Inner]
      var i = 0
      while (i < inner.count) {
        if (inner.level > 1) drop(child(inner, i)) else pages.drop(inner.page(i))
        i += 1
      }
    }
    pages.drop(node.number)
  }

  /** Child `i` of `inner`, read where it has not been. */
  def child(inner: Inner, i: Int): Node = {
    if (inner.node(i) == null) {
      inner.node_=(i, Node(inner.page(i), pages.own(inner.page(i))))
      loaded += 1
    }
    inner.node(i)
  }

  private def leafOf(key: Array[Byte]): Leaf = {
    var node = root
    while (node.level > 0) {
      val inner = node.asInstanceOf[Inner]
      node = child(inner, inner.search(key, order))
    }
    node.asInstanceOf[Leaf]
  }

  /** Marks the nodes on the way to `key`. */
  def touch(key: Array[Byte]): Unit = {
    var node = root
    node.touched = true
    while (node.level > 0) {
      val inner = node.asInstanceOf[Inner]
      node = child(inner, inner.search(key, order))
      node.touched = true
    }
  }

  /** Brings the tree into shape and writes its pages, unless it is small enough for the entry of its key.
    *
    * Afterwards the root is an empty leaf (no entries), a leaf without a page (it belongs into the entry), or a node with a page.
    */
  def settle(): Unit = if (root.touched) {
    root = root match {
      case inner: Inner => settled(inner)
      case leaf         => leaf
    }
    while (root.size > pages.limit && grow()) {}
    while (root.level > 0 && root.count <= 1) shrink()
    if (root.level == 0 && fitsEntry) {
      pages.drop(root.number)
      root.number = 0L
    } else save(root)
  }

  /** What is in pages comes back only when it is half as large as what leaves the entry: it shall not go to and fro. */
  private def fitsEntry: Boolean =
    root.count == 0 || root.size <= (if (paged) pages.limit / 8 else pages.limit / 4)

  /** Puts a new root above one that is too large; false where it cannot be cut. */
  private def grow(): Boolean = {
    val row = new Inner(0L, null, root.level + 1)
    row.touched = true
    root.pour(null, pages.limit, row)
    val cut = row.count > 1
    if (cut) {
      saveChildren(row)
      root = row
    }
    cut
  }

  /** The only child of a root takes its place. */
  private def shrink(): Unit = {
    val only = if (root.count == 0) Leaf.empty else child(root.asInstanceOf[Inner], 0)
    pages.drop(root.number)
    only.touched = true
    root = only
  }

  /** `inner` with its children in shape and in pages. */
  private def settled(inner: Inner): Inner = {
    val row = new Inner(inner.number, inner.stored, inner.level)
    var i = 0
    while (i < inner.count) {
      val node = inner.node(i)
      if (node == null || !node.touched) {
        row.insert(row.count, inner.first(i), inner.page(i), node)
        i += 1
      } else i = settleChild(inner, i, row)
    }
    mergeSmall(row)
    saveChildren(row)
    row.touched = true
    row
  }

  /** Adds what has become of child `i` to `row`; returns the index of the next child. */
  private def settleChild(inner: Inner, i: Int, row: Inner): Int = {
    var next = i + 1
    val node = inner.node(i) match {
      case deeper: Inner => settled(deeper)
      case leaf: Leaf =>
        while (next < inner.count && continues(inner.node(next))) {
          leaf.append(inner.node(next).asInstanceOf[Leaf])
          next += 1
        }
        leaf
    }
    if (node.count == 0) pages.drop(node.number) else node.pour(inner.first(i), pages.limit, row)
    next
  }

  private def continues(node: Node): Boolean = node match {
    case leaf: Leaf => leaf.continues
    case _          => false
  }

  /** A touched child under a quarter of a page joins a neighbour where both fill three quarters at most. */
  private def mergeSmall(row: Inner): Unit = {
    var i = 0
    while (i < row.count) {
      val node = row.node(i)
      if (node == null || !node.touched || node.size >= pages.limit / 4) i += 1
      else if (i > 0 && merge(row, i - 1)) i -= 1
      else if (i == row.count - 1 || !merge(row, i)) i += 1
    }
  }

  private def merge(row: Inner, i: Int): Boolean = {
    val left = child(row, i)
    val right = child(row, i + 1)
    val fits = left.size + right.size <= pages.limit - pages.limit / 4
    if (fits) {
      row.node_=(i, left.joined(right, row.first(i + 1)))
      row.remove(i + 1)
      pages.drop(right.number)
    }
    fits
  }

  private def saveChildren(row: Inner): Unit = {
    var i = 0
    while (i < row.count) {
      val node = row.node(i)
      if (node != null && node.touched) save(node)
      i += 1
    }
  }

  private def save(node: Node): Unit = {
    val bytes = node.bytes
    if (node.number == 0L) node.number = pages.add(bytes)
    else if (!Arrays.equals(bytes, node.stored)) pages.save(node.number, bytes)
  }
}

private[state] object Tree {

  /** Nodes of a tree that may be in memory before walks begin to let go of them: 4 MB with pages of 2 KB. */
  final val Crowd = 2048
}
