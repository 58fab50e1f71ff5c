package penstock.kernel.state

import java.util.{Arrays, Comparator}

/** The keys of a bucket that its page does not have: an open-addressed table by hash. */
private[state] final class Fresh {
  private[this] var table = new Array[KeyState](8)
  private[this] var n = 0

  def state(pages: Pages, hash: Int, key: Key): KeyState = {
    var at = place(hash)
    while (table(at) != null && !(table(at).hash == hash && table(at).sameKey(key))) at = (at + 1) & (table.length - 1)
    if (table(at) != null) table(at)
    else {
      val head = KeyState.head(key)
      val state = new KeyState(pages, hash, head, 0, head.length)
      table(at) = state
      n += 1
      if (2 * n > table.length) widen()
      state
    }
  }

  /** In the order of hash and key. */
  def sorted(): Array[KeyState] = {
    val states = new Array[KeyState](n)
    var at = 0
    var i = 0
    while (at < table.length) {
      if (table(at) != null) {
        states(i) = table(at)
        i += 1
      }
      at += 1
    }
    Arrays.sort(states, Fresh.Order)
    states
  }

  /** By the upper bits: the lower ones are the same for the whole bucket. */
  private def place(hash: Int): Int = (hash >>> Integer.numberOfLeadingZeros(table.length)) >>> 1

  private def widen(): Unit = {
    val old = table
    table = new Array[KeyState](2 * old.length)
    var i = 0
    while (i < old.length) {
      if (old(i) != null) {
        var at = place(old(i).hash)
        while (table(at) != null) at = (at + 1) & (table.length - 1)
        table(at) = old(i)
      }
      i += 1
    }
  }
}

private[state] object Fresh {
  private val Order: Comparator[KeyState] = (a, b) => {
    val hashes = Integer.compareUnsigned(a.hash, b.hash)
    if (hashes != 0) hashes else a.compareKey(b)
  }
}
