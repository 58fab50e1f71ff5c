package penstock.kernel.state

import java.util.{Arrays, Comparator, NavigableMap, Random, TreeMap}

import org.apache.spark.sql.catalyst.expressions.XXH64
import org.apache.spark.unsafe.Platform

import penstock.kernel.Checks.{equal, holds}

/** What a slot should hold: plain maps. */
final class Model(orders: Array[Comparator[Array[Byte]]]) {
  val keys = new TreeMap[Array[Byte], ModelState](Arrays.compareUnsigned(_: Array[Byte], _: Array[Byte]))

  def state(key: Array[Byte]): ModelState = keys.computeIfAbsent(key, _ => new ModelState(orders))

  /** Forgets keys without content, as a slot does. */
  def tidy(): Unit = keys.values.removeIf(state => state.isEmpty)
}

final class ModelState(orders: Array[Comparator[Array[Byte]]]) {
  var value: Array[Byte] = null
  val lists: Array[TreeMap[Array[Byte], Array[Byte]]] = orders.map(order => new TreeMap[Array[Byte], Array[Byte]](Node.compare(order, _, _)))

  def isEmpty: Boolean = value == null && lists.forall(_.isEmpty)
}

object Model {

  /** Ascending by the first byte, descending by the second: an order that bytes do not have. */
  val Zigzag: Comparator[Array[Byte]] = (a, b) => {
    val first = Integer.compare(byte(a, 0), byte(b, 0))
    if (first != 0) first else Integer.compare(byte(b, 1), byte(a, 1))
  }

  private def byte(bytes: Array[Byte], i: Int): Int = if (i < bytes.length) bytes(i) & 0xff else -1

  def hash(bytes: Array[Byte]): Long = XXH64.hashUnsafeBytes(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, 42L)

  def key(bytes: Array[Byte]): Key = new Key(bytes, 0, bytes.length, hash(bytes))

  def number(n: Long): Array[Byte] = {
    val bytes = new Array[Byte](8)
    Platform.putLong(bytes, Platform.BYTE_ARRAY_OFFSET, java.lang.Long.reverseBytes(n))
    bytes
  }

  def random(random: Random, length: Int): Array[Byte] = {
    val bytes = new Array[Byte](length)
    random.nextBytes(bytes)
    bytes
  }

  def same(found: Array[Byte], wanted: Array[Byte], what: => String): Unit =
    holds(Arrays.equals(found, wanted), s"$what: found ${show(found)}, wanted ${show(wanted)}")

  def show(bytes: Array[Byte]): String =
    if (bytes == null) "nothing" else s"${bytes.length}:${bytes.take(12).map(b => f"$b%02x").mkString}"

  /** The cursor gives exactly the entries of `wanted`, in its order. */
  def sameWalk(cursor: Cursor, wanted: NavigableMap[Array[Byte], Array[Byte]], what: => String): Unit = {
    wanted.forEach { (key, value) =>
      holds(cursor.next(), s"$what: ends before ${show(key)}")
      same(cursor.key, key, s"$what: key")
      same(cursor.value, value, s"$what: value of ${show(key)}")
    }
    holds(!cursor.next() && !cursor.next(), s"$what: goes on")
  }

  /** All that a stored slot says equals the model. */
  def sameSlot(store: MapStore, limit: Int, orders: Array[Comparator[Array[Byte]]], hash: Array[Byte] => Long, model: Model): Unit = {
    val before = store.content
    val slot = new Slot(store.begin(), limit, orders)
    equal(slot.keys, model.keys.size.toLong, "keys in the header")
    equal(slot.pages, store.pages.size.toLong, "pages in the header")
    model.keys.forEach { (bytes, wanted) =>
      val state = slot.state(new Key(bytes, 0, bytes.length, hash(bytes)))
      holds(!state.isEmpty, s"key ${show(bytes)} is empty")
      same(state.value, wanted.value, s"value of ${show(bytes)}")
      orders.indices.foreach { i =>
        equal(state.entries(i).isEmpty, wanted.lists(i).isEmpty, s"emptiness of collection $i of ${show(bytes)}")
        sameWalk(state.entries(i).ascending, wanted.lists(i), s"collection $i of ${show(bytes)}")
      }
    }
    slot.close()
    equal(store.writes, 0, "writes of a batch that only reads")
    sameKeys(new Slot(store.begin(), limit, orders), model)
    equal(store.content, before, "content after reading")
  }

  private def sameKeys(slot: Slot, model: Model): Unit = {
    val left = new TreeMap[Array[Byte], ModelState](model.keys)
    slot.foreach { (key, state) =>
      val wanted = left.remove(key.toBytes)
      holds(wanted != null, s"key ${show(key.toBytes)} does not exist or was visited twice")
      same(state.value, wanted.value, s"value of ${show(key.toBytes)} in a visit")
    }
    equal(left.size, 0, "keys that were not visited")
    slot.close()
  }
}
