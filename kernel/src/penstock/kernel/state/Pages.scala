package penstock.kernel.state

import java.util.Comparator

/** The pages of one slot by kind and number, counted.
  *
  * An address is a byte for the kind and the number, big-endian, in as few bytes as it needs. Buckets are shared by many
  * keys; an own page belongs to one key (a node of a collection's tree, or a large value) and has a number that no
  * page of the slot had before.
  */
private[state] final class Pages(
    store: PageStore,
    val limit: Int,
    val orders: Array[Comparator[Array[Byte]]],
    val sums: Array[Sum],
    private[this] var stored: Long,
    first: Long
) {
  private[this] var last = first
  private[this] val waiting = new java.util.TreeMap[Long, Array[Byte]]

  /** How many collections a key may have: the ordered ones come before the piles. */
  val collections: Int = orders.length + sums.length

  /** How many pages there are. */
  def count: Long = stored

  /** The newest number of an own page. */
  def newest: Long = last

  /** A bucket, null where there is none; a new slot need not ask. */
  def bucket(number: Int): Array[Byte] = if (stored == 0L) null else store.get(Pages.address(Pages.Bucket, number))

  /** Writes a bucket, or takes it away where `bytes` is null; `existed` says whether the store has it. */
  def saveBucket(number: Int, bytes: Array[Byte], existed: Boolean): Unit = {
    val address = Pages.address(Pages.Bucket, number)
    if (bytes != null) {
      store.put(address, bytes)
      if (!existed) stored += 1
    } else if (existed) {
      store.remove(address)
      stored -= 1
    }
  }

  def own(number: Long): Array[Byte] = store.get(Pages.address(Pages.Own, number))

  /** A new page; returns its number. */
  def add(bytes: Array[Byte]): Long = {
    last += 1
    waiting.put(last, bytes)
    last
  }

  def save(number: Long, bytes: Array[Byte]): Unit = waiting.put(number, bytes)

  /** 0 is the number of a page that was never written. */
  def drop(number: Long): Unit = if (number != 0L) waiting.put(number, null)

  /** Takes all away that are stored, whichever they are. */
  def dropAll(buckets: Int): Unit = {
    (0 until buckets).foreach(number => store.discard(Pages.address(Pages.Bucket, number)))
    (1L to first).foreach(number => store.discard(Pages.address(Pages.Own, number)))
  }

  /** Writes the own pages as they are in the end: a node may find its page, its parent and its place in the entry one after the other. */
  def flush(): Unit = waiting.forEach { (number, bytes) =>
    val address = Pages.address(Pages.Own, number)
    if (bytes != null) {
      store.put(address, bytes)
      if (number > first) stored += 1
    } else if (number <= first) {
      store.remove(address)
      stored -= 1
    }
  }
}

private[state] object Pages {
  final val Bucket: Byte = 1
  final val Own: Byte = 2

  def address(kind: Byte, number: Long): Array[Byte] = {
    val length = 1 max (71 - java.lang.Long.numberOfLeadingZeros(number)) / 8
    val bytes = new Array[Byte](1 + length)
    bytes(0) = kind
    var rest = number
    var i = length
    while (i > 0) {
      bytes(i) = rest.toByte
      rest >>>= 8
      i -= 1
    }
    bytes
  }
}
