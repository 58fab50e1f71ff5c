package penstock.kernel.state

import java.util.{Arrays, Comparator}

/** All keys of one slot during one batch.
  *
  * In: the slot's pages; `orders(i)` is the order of every key's collection i (null: unsigned bytes), `sums(i)` sums up its pile i. State:
  * the pages that were touched. Out: `close` writes what changed, each page once; a batch that changes nothing writes nothing. What is
  * written depends on what was stored and on what the states hold in the end, not on the order of calls.
  * Keys are spread over buckets by linear hashing: docs/formats/state.md.
  */
final class Slot(store: PageStore, limit: Int, orders: Array[Comparator[Array[Byte]]], sums: Array[Sum] = Slot.NoSums) {
  require(limit >= Slot.Least, s"pages of $limit bytes are too small; ${Slot.Least} is the least")

  private[this] val stored = store.header
  private[this] val header = if (stored == null) Header.Empty else Header(stored)
  private[this] val space = new Pages(store, limit, orders, sums, header.pages, header.newest)
  private[this] val buckets = new Buckets(space)
  private[this] var count = header.keys

  def this(store: PageStore) = this(store, Slot.Limit, Slot.NoOrders)

  /** The state of `key`, the same object for the same key until the slot is closed. */
  def state(key: Key): State = buckets.get(Bucket.of((key.hash >>> 32).toInt, header.buckets)).state(key)

  /** Visits every key that exists, with its state, which is valid during the visit.
    *
    * The visit may change that state, and others; a key that it brings into being may or may not be visited. The low
    * half of the hash that the key carries is zero: it is not kept. Pages that were only read for this are forgotten again.
    */
  def foreach(visit: (Key, State) => Unit): Unit = {
    var number = 0
    while (number < header.buckets) {
      val known = buckets.has(number)
      val bucket = buckets.get(number)
      bucket.foreach(visit)
      if (!known && bucket.onlyRead) buckets.forget(number)
      number += 1
    }
  }

  /** How many keys were stored when the slot was opened; after `close`, how many are. */
  def keys: Long = count

  /** How many pages were stored when the slot was opened; after `close`, how many are. */
  def pages: Long = space.count

  /** Writes what changed. The slot and its states cannot be used afterwards. */
  def close(): Unit = {
    val touched = buckets.sorted
    var weight = header.weight
    touched.foreach { bucket =>
      bucket.settle()
      weight += bucket.moreWeight
      count += bucket.moreKeys
    }
    space.flush()
    val n = Slot.buckets(header.buckets, weight, limit)
    if (n == header.buckets) touched.foreach(save) else new Regroup(space, buckets, header.buckets, n).run()
    saveHeader(new Header(n, weight, count, space.count, space.newest))
  }

  /** Takes everything away, without reading it. In place of `close`. */
  def drop(): Unit = if (stored != null) {
    space.dropAll(header.buckets)
    store.header = null
  }

  private def save(bucket: Bucket): Unit =
    if (bucket.changed) space.saveBucket(bucket.number, bucket.bytes, existed = bucket.base != null)

  private def saveHeader(now: Header): Unit = {
    val bytes = if (now.keys == 0L) null else now.bytes
    if (!Arrays.equals(bytes, stored)) store.header = bytes
  }
}

object Slot {

  /** Bytes of a page. */
  final val Limit = 2048

  private final val Least = 64

  private val NoOrders = new Array[Comparator[Array[Byte]]](0)
  val NoSums = new Array[Sum](0)

  /** How many buckets: more when they would hold five eighths of `limit` on average, fewer when half of that. */
  private[state] def buckets(now: Int, weight: Long, limit: Int): Int = {
    val full = limit / 8 * 5L
    val most = math.min((weight + full - 1) / full, Int.MaxValue / 2).toInt
    val least = math.min(weight / (full / 2), Int.MaxValue / 2).toInt
    1 max (now max most min (least max most))
  }
}
