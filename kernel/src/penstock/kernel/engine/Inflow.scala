package penstock.kernel.engine

import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.{Files, Path, Paths}
import java.nio.file.StandardOpenOption.{READ, WRITE}
import java.util.concurrent.atomic.AtomicLong
import scala.collection.mutable.{ArrayBuffer, LongMap}

/** How many bytes may wait in memory, of all that are on their way; about, for each inflow tells of them in steps. */
final class Room(most: Long) {
  private val taken = new AtomicLong()
  def add(bytes: Long): Unit = taken.addAndGet(bytes)
  def isFull: Boolean = taken.get > most
}

/** Rows on their way from one task to another, by group: in memory while there is `room`; else all that it holds goes to a file in `folder`, again and again.
  *
  * The file has no name as soon as it is open: whatever ends the process, nothing is left of it.
  */
final class Inflow(folder: String, room: Room) {
  private val held = new LongMap[ArrayBuffer[Array[Byte]]]()
  private val filed = new LongMap[ArrayBuffer[(Long, Int)]]()
  private var (bytes, told) = (0L, 0L)
  private var file: FileChannel = _

  def add(group: Long, envelope: Array[Byte]): Unit = {
    held.getOrElseUpdate(group, new ArrayBuffer[Array[Byte]]()) += envelope
    bytes += envelope.length + Inflow.Each
    if (bytes - told > Inflow.Step) {
      tell()
      if (room.isFull) spill()
    }
  }

  private def tell(): Unit = {
    room.add(bytes - told)
    told = bytes
  }

  def groups: Seq[Long] = (held.keySet ++ filed.keySet).toSeq

  /** The group's rows; they are there no more. */
  def take(group: Long): Iterator[Array[Byte]] = {
    val inMemory = held.remove(group).getOrElse(ArrayBuffer.empty)
    bytes -= inMemory.iterator.map(_.length.toLong + Inflow.Each).sum
    tell()
    inMemory.iterator ++ filed.remove(group).iterator.flatten.flatMap { case (start, length) => read(start, length) }
  }

  private def spill(): Unit = {
    if (file == null) file = Inflow.nameless(Paths.get(folder))
    held.foreach { case (group, envelopes) =>
      val packing = new Packing()
      envelopes.foreach(packing.add)
      val packed = ByteBuffer.wrap(packing.packed().bytes)
      filed.getOrElseUpdate(group, new ArrayBuffer[(Long, Int)]()) += ((file.size, packed.remaining))
      while (packed.hasRemaining) file.write(packed, file.size)
    }
    held.clear()
    bytes = 0
    tell()
  }

  private def read(start: Long, length: Int): Iterator[Array[Byte]] = {
    val found = ByteBuffer.allocate(length)
    while (found.hasRemaining) if (file.read(found, start + found.position()) < 0) throw new java.io.EOFException("rows that were put aside are gone")
    Packed(found.array, null, length).envelopes
  }

  def close(): Unit = if (file != null) file.close()
}

object Inflow {
  /** What an envelope takes of memory beside its bytes. */
  private val Each = 24
  private val Step = 1 << 14

  private def nameless(folder: Path): FileChannel = {
    val path = Files.createTempFile(folder, "relay-", ".tmp")
    try FileChannel.open(path, READ, WRITE) finally Files.delete(path)
  }
}
