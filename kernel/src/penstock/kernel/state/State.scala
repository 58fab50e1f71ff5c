package penstock.kernel.state

/** What an operator sees of one key: a value, ordered collections of entries, and piles of entries in no order.
  *
  * It is valid until the slot is closed. A key without a value and without entries does not exist. Arrays that are handed
  * in belong to the state from then on. An array that was handed out as a value may be changed if it is handed in again;
  * one that was handed out as a key must not be changed.
  */
abstract class State {

  /** The key's value, null where it has none. */
  def value: Array[Byte]

  /** Null takes the value away. Setting an equal value changes nothing. */
  def value_=(bytes: Array[Byte]): Unit

  /** The key's collection `i`, ordered by the slot's comparator `i`. */
  def entries(i: Int): Entries

  /** The key's pile `i`, summed up by the slot's sum `i`. */
  def pile(i: Int): Pile

  /** Nothing is kept for this key: no value, no entries. */
  def isEmpty: Boolean

  /** Takes away the value and all entries; large collections go without being read. */
  def clear(): Unit
}

/** A collection of one key: entries (sub-key, value) ordered by the comparator, ties broken by the sub-keys' unsigned bytes.
  *
  * Every call costs O(log n) pages. So a sub-key that the comparator finds equal to many, and that is a prefix of them,
  * stands before all of them: `from(prefix)` is how a range over a part of the sub-key begins.
  */
abstract class Entries {

  /** The value under `key`, null where there is none. */
  def get(key: Array[Byte]): Array[Byte]

  /** Values may be empty, not null. */
  def put(key: Array[Byte], value: Array[Byte]): Unit

  /** Whether there was such an entry. */
  def remove(key: Array[Byte]): Boolean

  def isEmpty: Boolean

  /** The first key, null where there is none. */
  def firstKey: Array[Byte]

  /** The last key, null where there is none. */
  def lastKey: Array[Byte]

  /** All entries, going up. */
  def ascending: Cursor

  /** All entries, going down. */
  def descending: Cursor

  /** The entries at or after `key`, going up. */
  def from(key: Array[Byte]): Cursor

  /** The entries after `key`, going up. */
  def after(key: Array[Byte]): Cursor

  /** The entries at or before `key`, going down. */
  def to(key: Array[Byte]): Cursor

  /** The entries before `key`, going down. */
  def before(key: Array[Byte]): Cursor

  /** Takes all entries away without reading those that lie in pages of their own. */
  def clear(): Unit
}

/** A walk over entries in one direction: `while (cursor.next()) use(cursor.key, cursor.value)`.
  *
  * Entries may be put and removed on the way, the current one too: the walk goes on from the current key and meets
  * what lies ahead of it by then.
  */
abstract class Cursor {

  /** Moves to the next entry; false where there is none, and from then on. */
  def next(): Boolean
  def key: Array[Byte]
  def value: Array[Byte]

  /** Replaces the value of the current entry. */
  def value_=(bytes: Array[Byte]): Unit
}

object Cursor {

  /** No entries. */
  val Empty: Cursor = new Cursor {
    def next(): Boolean = false
    def key: Array[Byte] = null
    def value: Array[Byte] = null
    def value_=(bytes: Array[Byte]): Unit = throw new IllegalStateException("there is no entry")
  }
}
