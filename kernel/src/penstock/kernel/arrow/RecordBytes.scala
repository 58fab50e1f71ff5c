package penstock.kernel.arrow

import java.nio.{ByteBuffer, ByteOrder}

import org.apache.arrow.flatbuf.{Buffer, FieldNode, Message, MessageHeader, RecordBatch}
import org.apache.spark.unsafe.Platform

/** A record batch message in a byte array, read in place: Arrow's metadata says where the buffers lie, nothing is copied or decoded.
  *
  * The checksum of the bytes has been checked before. Addresses are those that `Platform` takes with the array.
  */
final class RecordBytes(val bytes: Array[Byte], start: Int) {
  private val metadata = Platform.getInt(bytes, Platform.BYTE_ARRAY_OFFSET + start + 4)
  private val body = Platform.BYTE_ARRAY_OFFSET + start + RecordBytes.Prefix + metadata
  private val batch = RecordBytes.parsed(bytes, start)
  private val node = new FieldNode
  private val buffer = new Buffer

  def rows: Int = batch.length.toInt

  def nulls(at: Int): Long = batch.nodes(node, at).nullCount

  def length(at: Int): Int = batch.nodes(node, at).length.toInt

  /** Where a buffer begins. */
  def address(at: Int): Long = body + batch.buffers(buffer, at).offset

  /** Where the validity bitmap of a column begins, or `RecordBytes.AllValid`. */
  def validity(node: Int, at: Int): Long = if (nulls(node) == 0) RecordBytes.AllValid else address(at)
}

object RecordBytes {
  val AllValid: Long = -1L
  private val Prefix = 8
  private val Continuation = -1

  private def parsed(bytes: Array[Byte], start: Int): RecordBatch = {
    val from = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN)
    from.position(start + Prefix)
    val message = Message.getRootAsMessage(from)
    if (from.getInt(start) != Continuation || message.headerType != MessageHeader.RecordBatch)
      throw new IllegalStateException("no Arrow record batch where the log says that there is one")
    val batch = message.header(new RecordBatch).asInstanceOf[RecordBatch]
    if (batch.compression != null) throw new IllegalStateException("a compressed Arrow record batch, which the log's format does not have")
    batch
  }
}
