package penstock.kernel.log

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.file.{NoSuchFileException, Path}
import java.util.Arrays
import java.util.zip.CRC32

/** How far the log is committed: the open stretch, its length in bytes, and the number of the next frame.
  *
  * @param cut another one after recovery has cut bytes off the journal or replaced a stretch: what was read before may no longer be there
  */
final case class Mark(first: Long, bytes: Long, next: Long, cut: Int)

/** The file `committed`, asked every few milliseconds by every query: one read of 40 bytes, the same object while nothing has changed. */
final class MarkFile(folder: Path) {
  private val file =
    try new ReadFile(folder.resolve("committed"))
    catch { case _: NoSuchFileException => throw unreadable }
  private val bytes = new Array[Byte](MarkFile.Size)
  private val known = new Array[Byte](MarkFile.Size)
  private var mark: Mark = _

  /** The mark. One that is being written is read again. */
  def read(): Mark = synchronized {
    var tries = 0
    while (tries < MarkFile.Tries) {
      val count = file.read(0, bytes, 0, bytes.length)
      if (mark != null && Arrays.equals(bytes, known)) return mark
      if (count == bytes.length && holds) {
        System.arraycopy(bytes, 0, known, 0, bytes.length)
        val found = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN)
        mark = Mark(found.getLong(8), found.getLong(16), found.getLong(24), found.getInt(32))
        return mark
      }
      tries += 1
      if (tries > MarkFile.Tries / 2) Thread.sleep(1)
    }
    throw unreadable
  }

  private def holds: Boolean = {
    val crc = new CRC32
    crc.update(bytes, 0, MarkFile.Summed)
    val found = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN)
    found.getLong(0) == MarkFile.Magic && (found.getInt(MarkFile.Summed) & 0xffffffffL) == crc.getValue
  }

  private def unreadable: LogError =
    new LogError(s"the mark of the log at $folder cannot be read", hint = "Open the log with Log.open, which writes it anew.")
}

object MarkFile {
  private val Size = 40
  private val Summed = 36
  private val Tries = 200
  private val Magic = ByteBuffer.wrap("PSTKMARK".getBytes).order(ByteOrder.LITTLE_ENDIAN).getLong
}
