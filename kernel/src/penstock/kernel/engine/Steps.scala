package penstock.kernel.engine

import penstock.kernel.state.{Cursor, Entries}

/** A walk over a partition as a frame sees it: each copy of a row is a step, or all copies `together` are one.
  *
  * `index` counts copies, from the number that the first step is given.
  */
final class Steps(cursor: Cursor, together: Boolean, var index: Long) {
  var has = false
  var row: Array[Byte] = null
  /** How many copies the step takes. */
  var times = 0L
  private var left = 0L
  load()

  def kept: Array[Byte] = cursor.value
  def kept_=(bytes: Array[Byte]): Unit = cursor.value = bytes
  /** No copy of this row follows. */
  def lastOfRow: Boolean = left == times
  def advance(): Unit = {
    index += times
    left -= times
    if (left == 0) load()
  }
  private def load(): Unit = {
    has = cursor.next()
    if (has) {
      row = cursor.key
      left = Tally.weight(cursor.value)
      times = if (together) left else 1
    }
  }
}

/** A way through a partition: up its order, or down. */
final class Way(order: RowOrder, val up: Boolean) {
  def compare(a: Array[Byte], b: Array[Byte]): Int = if (up) order.total(a, b) else order.total(b, a)
  /** The rows at and beyond `key`, going on. */
  def from(entries: Entries, key: Array[Byte]): Cursor = if (up) entries.from(key) else entries.to(key)
  /** The rows that come before `key`, going back. */
  def back(entries: Entries, key: Array[Byte]): Cursor = if (up) entries.before(key) else entries.after(key)
  /** The side of a probe that this way meets first. */
  def near: Byte = if (up) RowOrder.Before else RowOrder.After
  def far: Byte = if (up) RowOrder.After else RowOrder.Before

  /** The row at which a walk back from `key` has passed `copies` copies or the first row, and how many copies there are from there to `key`. */
  def behind(entries: Entries, key: Array[Byte], copies: Long): (Array[Byte], Long) = {
    var found = key
    var passed = 0L
    val cursor = if (copies > 0) back(entries, key) else null
    while (passed < copies && cursor.next()) {
      found = cursor.key
      passed += Tally.weight(cursor.value)
    }
    (found, passed)
  }
}
