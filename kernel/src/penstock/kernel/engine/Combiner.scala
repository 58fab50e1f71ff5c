package penstock.kernel.engine

import java.util.Arrays
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.array.ByteArrayMethods

/** Folds rows of the same key together before they are shuffled.
  *
  * All that belongs to a key lies together, so that a row is found and folded with few looks into memory: an entry of
  * `[hash 8][stamp 8][place 8][its number 4][length of the key 4][numbers of the folds][key]` in one array of longs. The index, open-addressed, has where an entry begins and
  * the upper half of its hash; 0 where there is none. Where nearly every row has a key of its own it does not pay: then rows go as they are.
  */
final class Combiner(to: Target, gathering: Gathering) {
  import Combiner.Numbers
  private val gathered = new Gathered(new Array[Long](8 * Combiner.Smallest), new Array[AnyRef](gathering.objects * Combiner.Smallest))
  private[engine] var index = new Array[Long](Combiner.Smallest)
  private var used = 1 // an entry never begins at 0
  private var count = 0
  private var taken = 1
  private var rows = 0
  private var made = 0
  private var worthwhile = true

  /** Whether rows should still be added. */
  def pays: Boolean = worthwhile
  /** Whether it is time to take out what was gathered. */
  def isFull: Boolean =
    count >= Combiner.Most || used >= Combiner.Largest || gathered.values >= Combiner.MostValues || (!worthwhile && count > 0)

  def add(key: UnsafeRow, row: UnsafeRow, weight: Long, stamp: Long, place: Long): Unit = {
    val at = entry(key, Envelope.hashOf(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes))
    val held = gathered.numbers
    if (stamp > held(at + 1)) held(at + 1) = stamp
    if (place > held(at + 2)) held(at + 2) = place
    gathering.add(gathered, at + Numbers, number(at) * gathering.objects, row, weight)
    counted()
  }

  /** All entries. Compiled code finds them, by the index, and folds into them by itself. */
  private[engine] def held: Array[Long] = gathered.numbers
  /** A row was gathered. */
  private[engine] def counted(): Unit = {
    rows += 1
    if (rows == Combiner.Trial && made > Combiner.Trial / 5 * 4) worthwhile = false
  }

  /** Where the key's entry begins. */
  private def entry(key: UnsafeRow, hash: Long): Int = {
    val length = key.getSizeInBytes
    val mask = index.length - 1
    val tag = hash & Combiner.Upper
    var slot = Combiner.slot(hash) & mask
    while (index(slot) != 0) {
      val at = index(slot).toInt
      if ((index(slot) & Combiner.Upper) == tag && keyLength(at) == length &&
          ByteArrayMethods.arrayEquals(key.getBaseObject, key.getBaseOffset, gathered.numbers, keyStart(at), length)) return at
      slot = (slot + 1) & mask
    }
    insert(slot, key, hash)
  }

  /** A new entry for a key; the hash is any, as long as equal keys have equal ones. */
  private[engine] def insert(slot: Int, key: UnsafeRow, hash: Long): Int = {
    val (at, length) = (used, key.getSizeInBytes)
    used += Numbers + gathering.longs + length / 8
    if (used > gathered.numbers.length) gathered.numbers = Arrays.copyOf(gathered.numbers, math.max(used, 2 * gathered.numbers.length))
    if ((count + 1) * gathering.objects > gathered.things.length) gathered.things = Arrays.copyOf(gathered.things, 2 * gathered.things.length)
    val held = gathered.numbers
    held(at) = hash
    held(at + 1) = Long.MinValue
    held(at + 2) = Long.MinValue
    held(at + 3) = count.toLong << 32 | length
    Platform.copyMemory(key.getBaseObject, key.getBaseOffset, held, keyStart(at), length)
    index(slot) = (hash & Combiner.Upper) | at
    count += 1
    made += 1
    if (count * 2 > index.length) widen()
    at
  }

  private def widen(): Unit = {
    index = new Array[Long](2 * index.length)
    var at = 1
    while (at < used) {
      val hash = gathered.numbers(at)
      var slot = Combiner.slot(hash) & (index.length - 1)
      while (index(slot) != 0) slot = (slot + 1) & (index.length - 1)
      index(slot) = (hash & Combiner.Upper) | at
      at = after(at)
    }
  }

  /** What was gathered of one key after the other, as envelopes; null after the last one, and then it is empty again. */
  def take(): Array[Byte] =
    if (taken >= used) {
      clear()
      null
    } else {
      val at = taken
      taken = after(at)
      val held = gathered.numbers
      val numbers = Platform.LONG_ARRAY_OFFSET + 8L * (at + Numbers)
      val hash = Envelope.hashOf(held, keyStart(at) + to.apart, keyLength(at) - to.apart)
      val envelope =
        if (gathering.objects == 0) Envelope.of(to, Envelope.Partial, hash, held, keyStart(at), keyLength(at), held, numbers, 8 * gathering.longs)
        else {
          val bytes = gathering.write(gathered, at + Numbers, number(at) * gathering.objects)
          Envelope.of(to, Envelope.Partial, hash, held, keyStart(at), keyLength(at), bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length)
        }
      Envelope.stamped(envelope, 1, held(at + 1), held(at + 2))
    }

  private def clear(): Unit = {
    Arrays.fill(gathered.numbers, 0, used, 0L)
    Arrays.fill(gathered.things, null)
    Arrays.fill(index, 0L)
    gathered.values = 0
    used = 1
    count = 0
    taken = 1
  }

  private def number(at: Int): Int = (gathered.numbers(at + 3) >>> 32).toInt
  private def keyLength(at: Int): Int = gathered.numbers(at + 3).toInt
  private def keyStart(at: Int): Long = Platform.LONG_ARRAY_OFFSET + 8L * (at + Numbers + gathering.longs)
  private def after(at: Int): Int = at + Numbers + gathering.longs + keyLength(at) / 8
}

object Combiner {
  /** So many numbers stand before those of the folds. */
  val Numbers = 4
  private val Smallest = 1 << 10
  private val Most = 1 << 17
  private val Largest = 1 << 23
  private val MostValues = 1L << 19
  private val Trial = 20000
  private val Upper = 0xFFFFFFFF00000000L

  /** The lowest bits of the hash choose the group that a key belongs to. */
  private def slot(hash: Long): Int = (hash >>> 12).toInt
}
