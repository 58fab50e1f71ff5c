package penstock.kernel.state

import java.util.{Arrays, Comparator}

import scala.collection.mutable

/** Brings the keys of `before` buckets into `after` buckets, when the slot is closed.
  *
  * A bucket that is split hands some of its entries to one with a larger number, one that is merged hands all of them to one with
  * a smaller number. So the buckets that exist both before and after are the heads of families that exchange entries only
  * among themselves; a family without a member that comes or goes is written as it is.
  */
private[state] final class Regroup(pages: Pages, buckets: Buckets, before: Int, after: Int) {
  private[this] val heads = math.min(before, after)

  def run(): Unit = {
    val families = new java.util.TreeMap[Int, mutable.ArrayBuffer[Int]]
    var number = heads
    while (number < math.max(before, after)) {
      families.computeIfAbsent(Bucket.of(number, heads), head => mutable.ArrayBuffer(head)) += number
      number += 1
    }
    buckets.sorted.foreach { bucket =>
      if (bucket.changed && !families.containsKey(Bucket.of(bucket.number, heads)))
        pages.saveBucket(bucket.number, bucket.bytes, existed = bucket.base != null)
    }
    families.values.forEach(regroup(_))
  }

  private def regroup(family: mutable.ArrayBuffer[Int]): Unit = {
    val entries = new Entrants(after)
    family.foreach(number => if (number < before) buckets.get(number).pour(entries))
    family.foreach { number =>
      val existed = number < before && buckets.get(number).base != null
      val bytes = entries.bytes(number)
      val same = existed && bytes != null && Arrays.equals(bytes, buckets.get(number).base)
      if (!same) pages.saveBucket(number, bytes, existed)
    }
  }
}

/** Entries that look for their bucket among `buckets`. */
private[state] final class Entrants(buckets: Int) extends EntrySink {
  private[this] val found = mutable.HashMap.empty[Int, mutable.ArrayBuffer[Entrant]]

  def add(hash: Int, bytes: Array[Byte], from: Int, until: Int): Unit =
    found.getOrElseUpdate(Bucket.of(hash, buckets), mutable.ArrayBuffer.empty) += new Entrant(hash, bytes, from, until)

  /** The page of bucket `number`, null where nothing belongs there. */
  def bytes(number: Int): Array[Byte] = found.get(number).map { entrants =>
    val sorted = entrants.toArray
    Arrays.sort(sorted, Entrants.Order)
    val page = new PageBytes(sorted.length, sorted.foldLeft(4)((sum, entrant) => sum + 8 + entrant.until - entrant.from))
    sorted.foreach(entrant => page.add(entrant.hash, entrant.bytes, entrant.from, entrant.until))
    page.bytes
  }.orNull
}

private[state] object Entrants {
  private val Order: Comparator[Entrant] = (a, b) => {
    val hashes = Integer.compareUnsigned(a.hash, b.hash)
    if (hashes != 0) hashes else a.compareKey(b)
  }
}

/** An entry on its way to another bucket. */
private[state] final class Entrant(val hash: Int, val bytes: Array[Byte], val from: Int, val until: Int) {
  def compareKey(other: Entrant): Int = Arrays.compareUnsigned(
    bytes, keyFrom, keyFrom + keyLength, other.bytes, other.keyFrom, other.keyFrom + other.keyLength)

  private def keyLength: Int = Varint.get(bytes, from).toInt
  private def keyFrom: Int = from + Varint.size(keyLength)
}
