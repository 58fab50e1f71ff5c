package penstock.kernel.engine

import java.util.Queue
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.array.ByteArrayMethods

/** Folds rows of the same key together before they are shuffled.
  *
  * An open-addressed table from key to what was gathered. Given out when it is large, and at the end. Where nearly every row has a key of its
  * own it does not pay: then it stops, and rows go as they are.
  */
final class Combiner(to: Target, gathering: Gathering) {
  private var capacity = 1024
  private var keys = new Array[Array[Byte]](capacity)
  private var hashes = new Array[Long](capacity)
  private var gathered = new Array[Gathered](capacity)
  private var stamps = new Array[Long](capacity)
  private var places = new Array[Long](capacity)
  private var count = 0
  private var rows = 0L
  private var made = 0L
  var pays = true

  def add(key: UnsafeRow, row: UnsafeRow, weight: Long, stamp: Long, place: Long, out: Queue[Array[Byte]]): Unit = {
    val hash = Envelope.hashOf(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes)
    val at = find(key, hash)
    if (keys(at) == null) insert(at, key, hash)
    gathering.add(gathered(at), row, weight)
    stamps(at) = math.max(stamps(at), stamp)
    places(at) = math.max(places(at), place)
    rows += 1
    if (count * 2 > capacity) if (capacity < Combiner.Largest) grow() else flush(out)
    if (rows == Combiner.Trial && made > Combiner.Trial * 4 / 5) {
      flush(out)
      pays = false
    }
  }

  private def find(key: UnsafeRow, hash: Long): Int = {
    val length = key.getSizeInBytes
    var at = (hash >>> 20).toInt & (capacity - 1)
    while (keys(at) != null && !(hashes(at) == hash && keys(at).length == length &&
        ByteArrayMethods.arrayEquals(key.getBaseObject, key.getBaseOffset, keys(at), Platform.BYTE_ARRAY_OFFSET, length)))
      at = (at + 1) & (capacity - 1)
    at
  }

  private def insert(at: Int, key: UnsafeRow, hash: Long): Unit = {
    val bytes = new Array[Byte](key.getSizeInBytes)
    Platform.copyMemory(key.getBaseObject, key.getBaseOffset, bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length)
    keys(at) = bytes
    hashes(at) = hash
    gathered(at) = gathering.fresh()
    stamps(at) = Long.MinValue
    places(at) = Long.MinValue
    count += 1
    made += 1
  }

  private def grow(): Unit = {
    val (oldKeys, oldHashes, oldGathered, oldStamps, oldPlaces) = (keys, hashes, gathered, stamps, places)
    clear(capacity * 2)
    var i = 0
    while (i < oldKeys.length) {
      if (oldKeys(i) != null) {
        var at = (oldHashes(i) >>> 20).toInt & (capacity - 1)
        while (keys(at) != null) at = (at + 1) & (capacity - 1)
        keys(at) = oldKeys(i)
        hashes(at) = oldHashes(i)
        gathered(at) = oldGathered(i)
        stamps(at) = oldStamps(i)
        places(at) = oldPlaces(i)
        count += 1
      }
      i += 1
    }
  }

  private def clear(size: Int): Unit = {
    capacity = size
    keys = new Array[Array[Byte]](size)
    hashes = new Array[Long](size)
    gathered = new Array[Gathered](size)
    stamps = new Array[Long](size)
    places = new Array[Long](size)
    count = 0
  }

  def flush(out: Queue[Array[Byte]]): Unit = {
    val key = new UnsafeRow(0)
    var i = 0
    while (i < capacity) {
      if (keys(i) != null) {
        key.pointTo(keys(i), keys(i).length)
        val bytes = gathering.write(gathered(i))
        val envelope = Envelope.of(to, Envelope.Partial, key, bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length)
        out.add(Envelope.stamped(envelope, 1, stamps(i), places(i)))
      }
      i += 1
    }
    clear(1024)
  }
}

object Combiner {
  private val Largest = 1 << 18
  private val Trial = 20000L
}
