package penstock.kernel.log

import java.io.EOFException
import java.nio.ByteBuffer
import java.nio.channels.{ClosedByInterruptException, ClosedChannelException, FileChannel}
import java.nio.file.{Path, StandardOpenOption}
import java.util.zip.CRC32

/** A file read at given bytes, by any number of threads.
  *
  * Java closes a channel when a thread is interrupted while reading it, and Spark interrupts threads to stop them: whoever is not meant
  * opens the file again and goes on. The file may be gone by then (sealed away): that is a `NoSuchFileException`.
  */
final class ReadFile(val path: Path) extends AutoCloseable {
  @volatile private var channel = FileChannel.open(path, StandardOpenOption.READ)

  def size: Long = retried(_.size())

  /** Fills `into` from `at` on with up to `length` bytes of the file from byte `from` on; how many there were. */
  def read(from: Long, into: Array[Byte], at: Int, length: Int): Int = {
    var done = 0
    var more = true
    while (more && done < length) {
      val piece = ByteBuffer.wrap(into, at + done, math.min(length - done, ReadFile.Piece))
      val count = retried(_.read(piece, from + done))
      if (count < 0) more = false else done += count
    }
    done
  }

  def readFully(from: Long, into: Array[Byte], at: Int, length: Int): Unit =
    if (read(from, into, at, length) < length) throw new EOFException(s"$path ends before byte ${from + length}")

  /** Like `read`, and the checksum of what was read, taken while it is in the processor's cache; -1 if the file ends before. */
  def readChecked(from: Long, into: Array[Byte], length: Int): Long = {
    val crc = new CRC32
    var done = 0
    while (done < length) {
      val piece = math.min(length - done, ReadFile.Piece)
      if (read(from + done, into, done, piece) < piece) return -1
      crc.update(into, done, piece)
      done += piece
    }
    crc.getValue
  }

  /** The checksum of the whole file. */
  def checksum(): Long = {
    val crc = new CRC32
    val piece = new Array[Byte](ReadFile.Piece)
    var from = 0L
    var count = read(from, piece, 0, piece.length)
    while (count > 0) {
      crc.update(piece, 0, count)
      from += count
      count = read(from, piece, 0, piece.length)
    }
    crc.getValue
  }

  override def close(): Unit = channel.close()

  private def retried[T](use: FileChannel => T): T = {
    while (true) {
      val used = channel
      try return use(used)
      catch {
        case mine: ClosedByInterruptException => throw mine
        case _: ClosedChannelException => reopen(used)
      }
    }
    throw new IllegalStateException
  }

  private def reopen(closed: FileChannel): Unit = synchronized {
    if (channel eq closed) channel = FileChannel.open(path, StandardOpenOption.READ)
  }
}

object ReadFile {

  /** Small enough that Java's copy through its own buffer, and the checksum, find the bytes in the cache. */
  private val Piece = 256 * 1024
}
