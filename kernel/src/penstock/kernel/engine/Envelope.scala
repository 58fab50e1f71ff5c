package penstock.kernel.engine

import org.apache.spark.sql.catalyst.expressions.{UnsafeRow, XXH64}
import org.apache.spark.unsafe.Platform

/** Where an envelope goes: an operator, which of its inputs, and the chain of operators that it belongs to.
  *
  * @param apart so many bytes at the start of the key do not count for its hash: rows that differ in nothing else meet in one slot
  */
case class Target(operator: Int, port: Int, chain: Int, apart: Int = 0)

object Target {
  /** The operator of rows that are kept nowhere. */
  val Nowhere: Int = -3
}

/** A row on its way to an operator: one byte array, read in place.
  *
  * `[operator 4][port 2][kind 2][weight 8][hash of the key 8][stamp 8][place 8][length of the key 4][chain 4][key row][row]`, the
  * rows in Spark's UnsafeRow format. The layout is in docs/formats/envelope.md.
  */
object Envelope {
  val Header = 48
  /** A row that appeared or left. */
  val Row: Short = 0
  /** Rows of one key folded into one accumulator by the combiner. */
  val Partial: Short = 1
  /** No row at all: the operator is woken, or told in the stamp how far a clock has come. */
  val Tick: Short = 2
  private val Seed = 42L
  private val Base = Platform.BYTE_ARRAY_OFFSET

  def of(to: Target, kind: Short, key: UnsafeRow, row: UnsafeRow): Array[Byte] =
    of(to, kind, key, row.getBaseObject, row.getBaseOffset, row.getSizeInBytes)

  def of(to: Target, kind: Short, key: UnsafeRow, row: AnyRef, offset: Long, length: Int): Array[Byte] = {
    val hash = hashOf(key.getBaseObject, key.getBaseOffset + to.apart, key.getSizeInBytes - to.apart)
    of(to, kind, hash, key.getBaseObject, key.getBaseOffset, key.getSizeInBytes, row, offset, length)
  }

  /** Of bytes wherever they are; the hash is that of the key. */
  def of(to: Target, kind: Short, hash: Long, key: AnyRef, keyOffset: Long, keyLength: Int, row: AnyRef, offset: Long, length: Int): Array[Byte] = {
    val bytes = new Array[Byte](Header + keyLength + length)
    Platform.copyMemory(key, keyOffset, bytes, Base + Header, keyLength)
    Platform.copyMemory(row, offset, bytes, Base + Header + keyLength, length)
    Platform.putInt(bytes, Base, to.operator)
    Platform.putShort(bytes, Base + 4, to.port.toShort)
    Platform.putShort(bytes, Base + 6, kind)
    Platform.putLong(bytes, Base + 16, hash)
    Platform.putInt(bytes, Base + 40, keyLength)
    Platform.putInt(bytes, Base + 44, to.chain)
    bytes
  }

  /** What the source or the operator knows of the row: how often it appeared (or left), its watermark and its place. */
  def stamped(bytes: Array[Byte], weight: Long, stamp: Long, place: Long): Array[Byte] = {
    Platform.putLong(bytes, Base + 8, weight)
    Platform.putLong(bytes, Base + 24, stamp)
    Platform.putLong(bytes, Base + 32, place)
    bytes
  }

  /** Tells an operator's slot how far the clock of the target's port has come, and by which steps: see `Watermarks`. */
  def tick(to: Target, slot: Int, watermark: Long, steps: Array[Byte] = Array.emptyByteArray): Array[Byte] = {
    val bytes = stamped(of(to, Tick, FeedIterator.Nothing, steps, Base, steps.length), 0, watermark, Long.MinValue)
    Platform.putLong(bytes, Base + 16, slot)
    bytes
  }

  def hashOf(base: AnyRef, offset: Long, length: Int): Long = XXH64.hashUnsafeBytes(base, offset, length, Seed)

  def operator(e: Array[Byte]): Int = Platform.getInt(e, Base)
  def port(e: Array[Byte]): Int = Platform.getShort(e, Base + 4)
  def kind(e: Array[Byte]): Short = Platform.getShort(e, Base + 6)
  def weight(e: Array[Byte]): Long = Platform.getLong(e, Base + 8)
  def hash(e: Array[Byte]): Long = Platform.getLong(e, Base + 16)
  def stamp(e: Array[Byte]): Long = Platform.getLong(e, Base + 24)
  def place(e: Array[Byte]): Long = Platform.getLong(e, Base + 32)
  def keyLength(e: Array[Byte]): Int = Platform.getInt(e, Base + 40)
  def chain(e: Array[Byte]): Int = Platform.getInt(e, Base + 44)
  def row(e: Array[Byte]): Array[Byte] = java.util.Arrays.copyOfRange(e, rowStart(e), e.length)
  def rowStart(e: Array[Byte]): Int = Header + keyLength(e)
  def rowLength(e: Array[Byte]): Int = e.length - rowStart(e)

  /** Points `row` at the envelope's row. */
  def read(e: Array[Byte], row: UnsafeRow): UnsafeRow = {
    row.pointTo(e, Base + rowStart(e), rowLength(e))
    row
  }

  /** The group of Spark's that the envelope belongs to: its chain, and a slot chosen by the low bits of the hash. */
  def group(e: Array[Byte], slots: Int): Long = (chain(e).toLong << 32) | (hash(e) & (slots - 1))

  /** The order of rows where order matters: by place, then by bytes. A row may come and leave at one place (a pair whose two rows both
    * changed in a batch): it comes first, for what is not there cannot be taken away.
    */
  object ByPlace extends java.util.Comparator[Array[Byte]] {
    override def compare(a: Array[Byte], b: Array[Byte]): Int = {
      val byPlace = java.lang.Long.compare(place(a), place(b))
      val byBytes = if (byPlace != 0) byPlace else java.util.Arrays.compareUnsigned(a, Header, a.length, b, Header, b.length)
      if (byBytes != 0) byBytes else java.lang.Long.compare(weight(b), weight(a))
    }
  }
}
