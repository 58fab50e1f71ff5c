package penstock.kernel.state

/** Whole numbers from 0 in as few bytes as they need: seven bits a byte, the lowest first, the high bit says "more". */
private[kernel] object Varint {
  def size(n: Long): Int =
    if ((n & ~0x7fL) == 0L) 1 else (70 - java.lang.Long.numberOfLeadingZeros(n)) / 7

  /** The number at `at`; it takes `size` of itself. */
  def get(bytes: Array[Byte], at: Int): Long = {
    val first = bytes(at)
    if (first >= 0) first.toLong else long(bytes, at)
  }

  private def long(bytes: Array[Byte], at: Int): Long = {
    var n = 0L
    var i = at
    var shift = 0
    while (bytes(i) < 0) {
      n |= (bytes(i) & 0x7fL) << shift
      shift += 7
      i += 1
    }
    n | (bytes(i).toLong << shift)
  }

  /** Writes `n` at `at`; returns where it ends. */
  def put(bytes: Array[Byte], at: Int, n: Long): Int = {
    var rest = n
    var i = at
    while ((rest & ~0x7fL) != 0L) {
      bytes(i) = (rest | 0x80L).toByte
      rest >>>= 7
      i += 1
    }
    bytes(i) = rest.toByte
    i + 1
  }
}
