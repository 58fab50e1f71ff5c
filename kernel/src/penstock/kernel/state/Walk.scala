package penstock.kernel.state

import java.util.Comparator

/** A cursor over a tree: the leaf and the index of the current entry, and the way down to that leaf.
  *
  * Where entries came or went since the last step, the place is looked up again by the current key.
  */
private[state] final class Walk(tree: Tree, order: Comparator[Array[Byte]], up: Boolean) extends Cursor {
  private[this] var bound: Array[Byte] = null // where the walk goes on, when its place is lost; null: at an end
  private[this] var inclusive = false
  private[this] var current: Array[Byte] = null
  private[this] var leaf: Leaf = null
  private[this] var at = 0
  private[this] var moves = 0
  private[this] var over = false
  private[this] var inners = Walk.None
  private[this] var indices = Walk.Nowhere

  def startingAt(key: Array[Byte]): Walk = {
    bound = key
    inclusive = true
    this
  }

  def startingBeyond(key: Array[Byte]): Walk = {
    bound = key
    this
  }

  def key: Array[Byte] = current

  def value: Array[Byte] = if (moves == tree.moves) leaf.value(at) else tree.get(current)

  def value_=(bytes: Array[Byte]): Unit = tree.put(current, bytes)

  def next(): Boolean = {
    if (!over) {
      if (leaf == null || moves != tree.moves) seek() else at += (if (up) 1 else -1)
      while (!over && (at < 0 || at >= leaf.count)) neighbour()
      if (over) {
        leaf = null
        current = null
      } else {
        current = leaf.keyCopy(at)
        bound = current
        inclusive = false
      }
    }
    !over
  }

  private def seek(): Unit = {
    moves = tree.moves
    descend(tree.top)
    at =
      if (bound == null) { if (up) 0 else leaf.count - 1 }
      else {
        val found = leaf.search(bound, order)
        if (found >= 0 && inclusive) found
        else if (found >= 0) { if (up) found + 1 else found - 1 }
        else if (up) -1 - found
        else -2 - found
      }
  }

  private def descend(top: Node): Unit = {
    var node = top
    if (inners.length <= node.level) {
      inners = new Array[Inner](node.level + 1)
      indices = new Array[Int](node.level + 1)
    }
    while (node.level > 0) {
      val inner = node.asInstanceOf[Inner]
      step(inner, if (bound != null) inner.search(bound, order) else if (up) 0 else inner.count - 1)
      node = tree.child(inner, indices(inner.level))
    }
    leaf = node.asInstanceOf[Leaf]
  }

  private def step(inner: Inner, i: Int): Unit = {
    inners(inner.level) = inner
    indices(inner.level) = i
  }

  /** The next leaf in the walk's direction, at its near end. */
  private def neighbour(): Unit = {
    val top = tree.top.level
    var level = 1
    if (top > 0 && tree.crowded) inners(1).forget(indices(1))
    while (level <= top && atEnd(level)) level += 1
    if (level > top) over = true
    else {
      indices(level) += (if (up) 1 else -1)
      while (level > 1) {
        val inner = tree.child(inners(level), indices(level)).asInstanceOf[Inner]
        level -= 1
        step(inner, if (up) 0 else inner.count - 1)
      }
      leaf = tree.child(inners(1), indices(1)).asInstanceOf[Leaf]
      at = if (up) 0 else leaf.count - 1
    }
  }

  private def atEnd(level: Int): Boolean = indices(level) == (if (up) inners(level).count - 1 else 0)
}

private[state] object Walk {
  private val None = new Array[Inner](0)
  private val Nowhere = new Array[Int](0)
}
