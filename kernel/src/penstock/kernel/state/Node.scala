package penstock.kernel.state

import java.util.{Arrays, Comparator}

/** A node of a collection's tree, in memory from its first use until the slot is closed.
  *
  * `number` is that of its page, 0 while it has none. `stored` is the page as it was read, null for a new node.
  */
private[state] abstract class Node(var number: Long, val stored: Array[Byte]) {

  /** A change may have happened in it or beneath it. */
  var touched = false

  /** Leaves lie on level 0. */
  def level: Int
  def count: Int

  /** The bytes of its page. */
  def size: Int
  def bytes: Array[Byte]

  /** Cuts a node that is too large into several, the first of which keeps the page; adds them to `row`. */
  def pour(first: Array[Byte], limit: Int, row: Inner): Unit

  /** This node and its right neighbour, whose keys begin at `first`, as one node in this node's page. */
  def joined(right: Node, first: Array[Byte]): Node
}

private[state] object Node {
  def apply(number: Long, bytes: Array[Byte]): Node =
    if (bytes(0) == 0) new Leaf(number, bytes, bytes, 1, bytes.length) else Inner(number, bytes)

  /** The order of a collection: the comparator where there is one, then the bytes. */
  def compare(order: Comparator[Array[Byte]], a: Array[Byte], b: Array[Byte]): Int = {
    val sign = if (order == null) 0 else order.compare(a, b)
    if (sign != 0) sign else Arrays.compareUnsigned(a, b)
  }
}
