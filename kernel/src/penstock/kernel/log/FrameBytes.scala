package penstock.kernel.log

import java.nio.{ByteBuffer, ByteOrder}
import java.util.zip.CRC32

import com.fasterxml.jackson.core.JsonProcessingException
import org.apache.spark.unsafe.Platform

/** A frame found in a file: its header, the byte where it begins, where its body begins, and where it ends. */
final case class Found(header: Header, start: Long, body: Long, end: Long)

/** The bytes of frames, as docs/formats/log.md lays them out. Frames are read through a window that grows while they are small. */
final class FrameBytes(file: ReadFile) {
  private var window = new Array[Byte](FrameBytes.Look)
  private var from = 0L
  private var held = 0

  /** The frame that begins at `start`, or null if its first header is not whole. It may end after `limit`: then its end is missing. */
  def front(start: Long, limit: Long): Found = {
    if (!look(start, FrameBytes.Front, limit)) return null
    val at = (start - from).toInt
    val length = int(at + 4)
    val body = long(at + 8)
    if (int(at) != FrameBytes.FrontMagic || length <= 0 || length > limit - start || body < 0) return null
    if (!look(start, FrameBytes.Front + length, limit)) return null
    found((start - from).toInt + FrameBytes.Front, length, body, int((start - from).toInt + 16), start)
  }

  /** The frame that ends at `end`, from its second header, or null if that is not whole or it begins before `least`. */
  def back(end: Long, least: Long): Found = {
    if (end - least < FrameBytes.Ends || !look(end - FrameBytes.Back, FrameBytes.Back, end)) return null
    val at = (end - FrameBytes.Back - from).toInt
    val (crc, body, length) = (int(at + 4), long(at + 8), int(at + 16))
    if (int(at + 20) != FrameBytes.BackMagic || !fits(length, body, end - least)) return null
    val text = end - FrameBytes.Back - length
    if (!look(text, length, end)) return null
    found((text - from).toInt, length, body, crc, end - FrameBytes.Ends - 2L * length - body)
  }

  /** The frame that begins at `start` and whose first header is damaged: it ends where a second one leads back here. */
  def byBack(start: Long, limit: Long): Found = {
    var end = start + FrameBytes.Ends
    while (end <= limit) {
      if (look(end - 4, 4, limit) && int((end - 4 - from).toInt) == FrameBytes.BackMagic) {
        val frame = back(end, start)
        if (frame != null && frame.start == start) return frame
      }
      end += 8
    }
    null
  }

  /** The first byte from `start` on where a frame begins that is whole at both ends, its number above `after`; or `limit`. */
  def nextFront(start: Long, limit: Long, after: Long): Long = {
    var at = start + (8 - start % 8) % 8
    while (at < limit) {
      if (look(at, 4, limit) && int((at - from).toInt) == FrameBytes.FrontMagic) {
        val frame = front(at, limit)
        if (frame != null && frame.header.frame > after && frame.end <= limit && back(frame.end, at) != null) return at
      }
      at += 8
    }
    limit
  }

  /** Bytes after the committed end may still change: nothing of them is kept from one scan to the next. */
  def forget(): Unit = held = 0

  private def found(text: Int, length: Int, body: Long, crc: Int, start: Long): Found = {
    val front = ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN).putInt(FrameBytes.FrontMagic).putInt(length).putLong(body)
    val sum = new CRC32
    sum.update(front.array)
    sum.update(window, text, length)
    if (sum.getValue != (crc & 0xffffffffL)) return null
    val end = start + FrameBytes.Ends + 2L * length + body
    val header =
      try Header.parsed(window, text, length)
      catch { case error: JsonProcessingException => throw senseless(text, length, start, error) }
    Found(header, start, start + FrameBytes.Front + length, end)
  }

  private def senseless(text: Int, length: Int, start: Long, error: JsonProcessingException): DamagedLog = {
    val which = Header.number(window, text, length).fold(s"the frame at byte $start")(number => s"frame $number")
    LogError.senseless(s"the header of $which", new IllegalStateException(s"${file.path}: ${error.getOriginalMessage}"))
  }

  private def fits(length: Int, body: Long, room: Long): Boolean =
    length > 0 && body >= 0 && length <= room && body <= room && FrameBytes.Ends + 2L * length + body <= room

  /** Makes the window hold `length` bytes from `start`; false if they reach beyond `limit` or the file's end. */
  private def look(start: Long, length: Int, limit: Long): Boolean = {
    if (start < 0 || start + length > limit) return false
    if (start < from || start + length > from + held) {
      // Another frame right behind the window: they are small, so more of them are read at once.
      val near = held > 0 && start >= from && start <= from + held
      val size = math.max(length, if (near) math.min(window.length * 4, FrameBytes.Most) else FrameBytes.Look)
      if (window.length < size || (!near && window.length > FrameBytes.Look)) window = new Array[Byte](size)
      held = 0
      from = start
      held = file.read(start, window, 0, math.min(window.length.toLong, limit - start).toInt)
    }
    start + length <= from + held
  }

  private def int(at: Int): Int = Platform.getInt(window, Platform.BYTE_ARRAY_OFFSET + at)
  private def long(at: Int): Long = Platform.getLong(window, Platform.BYTE_ARRAY_OFFSET + at)
}

object FrameBytes {
  private val Front = 24
  private val Back = 24
  private val Ends = Front + Back
  private val Look = 4096
  private val Most = 1 << 20
  private val FrontMagic = ByteBuffer.wrap("PENF".getBytes).order(ByteOrder.LITTLE_ENDIAN).getInt
  private val BackMagic = ByteBuffer.wrap("FNEP".getBytes).order(ByteOrder.LITTLE_ENDIAN).getInt
}
