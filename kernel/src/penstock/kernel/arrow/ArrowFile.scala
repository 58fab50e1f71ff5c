package penstock.kernel.arrow

import java.nio.{ByteBuffer, ByteOrder}

import org.apache.arrow.flatbuf.Footer
import penstock.kernel.log.ReadFile

/** A record batch message in an Arrow file: where it begins, how long it is with its body, and its rows. */
final case class BatchInFile(start: Long, bytes: Long, rows: Int)

/** The record batches of an Arrow IPC file, as its footer lists them. */
object ArrowFile {
  private val Magic = "ARROW1"

  def batches(file: ReadFile): Seq[BatchInFile] = {
    val tail = new Array[Byte](4 + Magic.length)
    file.readFully(file.size - tail.length, tail, 0, tail.length)
    if (new String(tail, 4, Magic.length) != Magic) throw new IllegalStateException(s"${file.path} is no Arrow file")
    val length = ByteBuffer.wrap(tail).order(ByteOrder.LITTLE_ENDIAN).getInt
    val bytes = new Array[Byte](length)
    file.readFully(file.size - tail.length - length, bytes, 0, length)
    val footer = Footer.getRootAsFooter(ByteBuffer.wrap(bytes))
    Seq.tabulate(footer.recordBatchesLength) { at =>
      val block = footer.recordBatches(at)
      BatchInFile(block.offset, block.metaDataLength + block.bodyLength, rows(file, block.offset, block.metaDataLength))
    }
  }

  private def rows(file: ReadFile, start: Long, metadata: Int): Int = {
    val bytes = new Array[Byte](metadata)
    file.readFully(start, bytes, 0, metadata)
    new RecordBytes(bytes, 0).rows
  }
}
