package penstock.kernel.state

/** What a slot remembers besides its pages.
  *
  * Bytes: the format, 1; then as varints the number of buckets, the weight of all entries in them, the number of keys,
  * the number of pages, the newest number of an own page. A slot without keys has no header.
  */
private[state] final class Header(val buckets: Int, val weight: Long, val keys: Long, val pages: Long, val newest: Long) {
  def bytes: Array[Byte] = {
    val numbers = Array(buckets.toLong, weight, keys, pages, newest)
    val out = new Array[Byte](1 + numbers.map(Varint.size).sum)
    out(0) = Header.Format
    numbers.foldLeft(1)((at, number) => Varint.put(out, at, number))
    out
  }
}

private[state] object Header {
  final val Format: Byte = 1

  val Empty = new Header(1, 0L, 0L, 0L, 0L)

  def apply(bytes: Array[Byte]): Header = {
    if (bytes(0) != Format)
      throw new IllegalStateException(s"the state has format ${bytes(0)}, this Penstock reads $Format; reset the pipeline")
    var at = 1
    val numbers = Array.fill(5) {
      val number = Varint.get(bytes, at)
      at += Varint.size(number)
      number
    }
    new Header(numbers(0).toInt, numbers(1), numbers(2), numbers(3), numbers(4))
  }
}
