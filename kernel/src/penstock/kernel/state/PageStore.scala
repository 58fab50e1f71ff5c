package penstock.kernel.state

/** Where the pages of one slot live: state variables of Spark in production, a plain map in tests.
  *
  * A slot reads the header once, every page at most once, and writes each at most once, in `Slot.close`. Arrays that
  * are handed in are never changed afterwards; arrays that are handed out must not change while the slot is open.
  */
trait PageStore {

  /** The slot's header, null where there is none. */
  def header: Array[Byte]

  /** Null takes the header away. */
  def header_=(bytes: Array[Byte]): Unit

  /** The page under this address, null where there is none. */
  def get(page: Array[Byte]): Array[Byte]
  def put(page: Array[Byte], bytes: Array[Byte]): Unit
  def remove(page: Array[Byte]): Unit

  /** Takes away a page that may not be there. */
  def discard(page: Array[Byte]): Unit = remove(page)
}
