package penstock.kernel.engine

import java.io.{BufferedInputStream, BufferedOutputStream, ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}
import java.nio.file.{Files, Path, Paths}
import java.util.UUID

/** What leaves one task: envelopes one after the other, `[length 4][envelope]...`, in memory if they are few, else in a file.
  *
  * A file belongs to one attempt of a task: one that fails, or comes second, leaves behind what nobody refers to.
  */
final case class Packed(bytes: Array[Byte], file: String, size: Long) {
  def envelopes: Iterator[Array[Byte]] = new Iterator[Array[Byte]] {
    private val source = if (file == null) new ByteArrayInputStream(bytes) else new BufferedInputStream(Files.newInputStream(Paths.get(file)), Packed.Buffer)
    private val in = new DataInputStream(source)
    private var left = Packed.this.size
    if (left == 0) in.close()

    override def hasNext: Boolean = left > 0
    override def next(): Array[Byte] = {
      val envelope = new Array[Byte](in.readInt())
      in.readFully(envelope)
      left -= 4 + envelope.length
      if (left == 0) in.close()
      envelope
    }
  }
  /** The same in a file. */
  def filed(folder: String): Packed = if (file != null) this else {
    val path = Packed.fresh(folder)
    Files.write(path, bytes)
    Packed(null, path.toString, size)
  }
  def delete(): Unit = if (file != null) Files.deleteIfExists(Paths.get(file))
}

object Packed {
  private val Buffer = 1 << 16

  /** With more than `bound` bytes they are in a file in `folder`. */
  def of(envelopes: Iterator[Array[Byte]], bound: Long, folder: String): Packed = {
    val held = new Packing()
    while (envelopes.hasNext && held.size <= bound) held.add(envelopes.next())
    if (held.size <= bound) held.packed() else overflowing(held.packed(), envelopes, folder)
  }

  private def overflowing(first: Packed, rest: Iterator[Array[Byte]], folder: String): Packed = {
    val file = fresh(folder)
    var size = first.size
    try {
      val out = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(file), Buffer))
      try {
        out.write(first.bytes)
        rest.foreach { envelope =>
          out.writeInt(envelope.length)
          out.write(envelope)
          size += 4 + envelope.length
        }
      } finally out.close()
    } catch {
      case failure: Throwable =>
        Files.deleteIfExists(file)
        throw failure
    }
    Packed(null, file.toString, size)
  }

  private def fresh(folder: String): Path = Paths.get(folder, s"${UUID.randomUUID()}.packed")
}

/** Envelopes being packed, in memory. */
final class Packing {
  private val held = new ByteArrayOutputStream(4096)
  private val out = new DataOutputStream(held)
  def add(envelope: Array[Byte]): Unit = {
    out.writeInt(envelope.length)
    out.write(envelope)
  }
  def size: Long = held.size
  def packed(): Packed = Packed(held.toByteArray, null, held.size)
}
