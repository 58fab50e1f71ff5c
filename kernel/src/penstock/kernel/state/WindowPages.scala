package penstock.kernel.state

import java.nio.ByteBuffer

/** The pages of one window among those of its operator: the window's end stands before their addresses. */
final class WindowPages(pages: PageStore, end: Long) extends PageStore {
  private val own = ByteBuffer.allocate(9).put(WindowPages.Kind).putLong(end ^ Long.MinValue).array
  private def address(page: Array[Byte]): Array[Byte] = ByteBuffer.allocate(own.length + page.length).put(own).put(page).array

  override def header: Array[Byte] = pages.get(own)
  override def header_=(bytes: Array[Byte]): Unit = if (bytes == null) pages.remove(own) else pages.put(own, bytes)
  override def get(page: Array[Byte]): Array[Byte] = pages.get(address(page))
  override def put(page: Array[Byte], bytes: Array[Byte]): Unit = pages.put(address(page), bytes)
  override def remove(page: Array[Byte]): Unit = pages.remove(address(page))
  override def discard(page: Array[Byte]): Unit = pages.discard(address(page))
}

object WindowPages {
  /** Beside the kinds of pages that a slot has. */
  private val Kind: Byte = 3
}
