package penstock.kernel.state

import java.util.{Arrays, Comparator}

/** The buckets that were read in this batch: an open-addressed table by number. */
private[state] final class Buckets(pages: Pages) {
  private[this] var table = new Array[Bucket](16)
  private[this] var n = 0

  /** The bucket, read where it has not been. */
  def get(number: Int): Bucket = {
    val at = place(number)
    if (table(at) != null) table(at)
    else {
      val bucket = new Bucket(pages, number, pages.bucket(number))
      table(at) = bucket
      n += 1
      if (2 * n > table.length) widen()
      bucket
    }
  }

  def has(number: Int): Boolean = table(place(number)) != null

  /** Takes a bucket out; those that had to stand aside for it move up. */
  def forget(number: Int): Unit = {
    var at = place(number)
    table(at) = null
    n -= 1
    at = (at + 1) & (table.length - 1)
    while (table(at) != null) {
      val next = table(at)
      table(at) = null
      table(place(next.number)) = next
      at = (at + 1) & (table.length - 1)
    }
  }

  /** All of them by number. */
  def sorted: Array[Bucket] = {
    val all = table.filter(_ != null)
    Arrays.sort(all, Buckets.Order)
    all
  }

  private def place(number: Int): Int = {
    var at = number & (table.length - 1)
    while (table(at) != null && table(at).number != number) at = (at + 1) & (table.length - 1)
    at
  }

  private def widen(): Unit = {
    val old = table
    table = new Array[Bucket](2 * old.length)
    old.foreach(bucket => if (bucket != null) table(place(bucket.number)) = bucket)
  }
}

private[state] object Buckets {
  private val Order: Comparator[Bucket] = (a, b) => Integer.compare(a.number, b.number)
}
