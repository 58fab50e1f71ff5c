package penstock.kernel.engine

import java.util.{Comparator, Iterator => JavaIterator, Map => JavaMap, NavigableMap, TreeMap}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import penstock.kernel.state.{Cursor, Entries}

/** A fold with collections, over the rows of a frame: they are in memory, and never written down. One object more: the collections. */
case class InMemoryFold(inner: Fold) extends Fold {
  override def longs: Int = inner.longs
  override def objects: Int = 1 + inner.objects
  override def merges: Boolean = false
  override def grows: Boolean = true

  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit =
    inner.keep(g, n, o + 1, entriesOf(g, o), row, input, weight, 0L)

  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit = {
    inner.settle(g, n, o + 1, entriesOf(g, o))
    inner.fill(g, n, o + 1, entriesOf(g, o), buffer, at)
  }

  private def entriesOf(g: Gathered, o: Int): Array[Entries] = {
    if (g.things(o) == null) g.things(o) = inner.collections.map(order => new TreeEntries(order): Entries).toArray
    g.things(o).asInstanceOf[Array[Entries]]
  }
}

/** Entries in a tree in memory. What a walk has not met yet must not change. */
final class TreeEntries(order: Comparator[Array[Byte]]) extends Entries {
  private type Held = NavigableMap[Array[Byte], Array[Byte]]
  private val held: Held = new TreeMap[Array[Byte], Array[Byte]](order.thenComparing(Operator.Bytes))

  override def get(key: Array[Byte]): Array[Byte] = held.get(key)
  override def put(key: Array[Byte], value: Array[Byte]): Unit = held.put(key, value)
  override def remove(key: Array[Byte]): Boolean = held.remove(key) != null
  override def isEmpty: Boolean = held.isEmpty
  override def firstKey: Array[Byte] = if (held.isEmpty) null else held.firstKey
  override def lastKey: Array[Byte] = if (held.isEmpty) null else held.lastKey
  override def ascending: Cursor = walk(held)
  override def descending: Cursor = walk(held.descendingMap)
  override def from(key: Array[Byte]): Cursor = walk(held.tailMap(key, true))
  override def after(key: Array[Byte]): Cursor = walk(held.tailMap(key, false))
  override def to(key: Array[Byte]): Cursor = walk(held.headMap(key, true).descendingMap)
  override def before(key: Array[Byte]): Cursor = walk(held.headMap(key, false).descendingMap)
  override def clear(): Unit = held.clear()

  private def walk(entries: Held): Cursor = new Cursor {
    private val all: JavaIterator[JavaMap.Entry[Array[Byte], Array[Byte]]] = entries.entrySet.iterator
    private var at: JavaMap.Entry[Array[Byte], Array[Byte]] = _
    override def next(): Boolean = {
      val has = all.hasNext
      if (has) at = all.next()
      has
    }
    override def key: Array[Byte] = at.getKey
    override def value: Array[Byte] = at.getValue
    override def value_=(bytes: Array[Byte]): Unit = at.setValue(bytes)
  }
}
