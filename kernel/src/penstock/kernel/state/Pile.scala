package penstock.kernel.state

/** Makes one value of two that were added under one sub-key, the older one first; null where nothing is left of them. */
abstract class Sum extends Serializable {
  def apply(older: Array[Byte], newer: Array[Byte]): Array[Byte]
}

/** A collection of one key in no order: entries (sub-key, value) are added without a look at what is there.
  *
  * A walk meets every addition, those of one sub-key one by one or summed up. Additions are summed up when as many have come as there were
  * entries, so about twice the entries are kept at most, and an addition costs the bytes of a few entries, not pages. The same additions
  * in the same order, cut into the same batches, are written as the same bytes.
  */
abstract class Pile {

  /** `weight` is how often the entry is there with this addition, negative where it takes back what was added before. At the end of a batch no
    * entry may be there less than never: nothing is left when all weights add up to nothing.
    */
  def add(key: Array[Byte], value: Array[Byte], weight: Long): Unit

  /** Every addition; none may be added on the way. */
  def walk: Cursor

  /** Nothing is left when all is summed up. */
  def isEmpty: Boolean

  /** Takes everything away. */
  def clear(): Unit
}
