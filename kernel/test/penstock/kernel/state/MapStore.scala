package penstock.kernel.state

import java.nio.ByteBuffer
import java.util.{HashMap, HashSet, TreeMap}

/** Pages in a plain map; counts what a batch does and holds it to one read and one write of each page. */
final class MapStore extends PageStore {
  val pages = new HashMap[ByteBuffer, Array[Byte]]
  private var head: Array[Byte] = null
  private val read = new HashSet[ByteBuffer]
  private val written = new HashSet[ByteBuffer]
  var reads = 0

  /** Very long walks may read a page again. */
  var rereads = false
  var writes = 0

  def header: Array[Byte] = {
    once(read, MapStore.Header, "read")
    reads += 1
    head
  }

  def header_=(bytes: Array[Byte]): Unit = {
    once(written, MapStore.Header, "written")
    writes += 1
    head = bytes
  }

  def get(page: Array[Byte]): Array[Byte] = {
    if (!rereads) once(read, ByteBuffer.wrap(page), "read")
    reads += 1
    pages.get(ByteBuffer.wrap(page))
  }

  def put(page: Array[Byte], bytes: Array[Byte]): Unit = {
    once(written, ByteBuffer.wrap(page), "written")
    writes += 1
    pages.put(ByteBuffer.wrap(page), bytes)
  }

  def remove(page: Array[Byte]): Unit = {
    once(written, ByteBuffer.wrap(page), "removed or written")
    writes += 1
    if (pages.remove(ByteBuffer.wrap(page)) == null) throw new AssertionError(s"page ${page.toSeq} removed, but was not there")
  }

  override def discard(page: Array[Byte]): Unit = if (pages.containsKey(ByteBuffer.wrap(page))) remove(page)

  /** Another batch begins. */
  def begin(): MapStore = {
    read.clear()
    written.clear()
    reads = 0
    writes = 0
    this
  }

  def isEmpty: Boolean = head == null && pages.isEmpty
  def bytes: Long = pages.values.stream.mapToLong(_.length.toLong).sum

  /** All of it, to be compared. */
  def content: TreeMap[String, Seq[Byte]] = {
    val all = new TreeMap[String, Seq[Byte]]
    pages.forEach((page, bytes) => all.put(page.array.mkString(","), bytes.toSeq))
    if (head != null) all.put("header", head.toSeq)
    all
  }

  private def once(done: HashSet[ByteBuffer], page: ByteBuffer, what: String): Unit =
    if (!done.add(page)) throw new AssertionError(s"page ${page.array.toSeq} $what twice in one batch")
}

object MapStore {
  private val Header = ByteBuffer.wrap(new Array[Byte](0))
}
