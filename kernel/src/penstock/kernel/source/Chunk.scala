package penstock.kernel.source

import org.apache.spark.sql.types._
import penstock.kernel.arrow.Layout
import penstock.kernel.log.{DamagedLog, LogError, Place}

/** Which columns a record batch holds: in sealed files offset, place and append time first; then those of the topic's schema
  * version; then the extras.
  */
final class BlockLayout(val isSealed: Boolean, val columns: StructType, val extras: Array[String]) extends Serializable {
  @transient lazy val layout: Layout = {
    val stored = columns.fields.map(_.dataType) ++ extras.map(Hidden.extra(_, columns))
    new Layout(if (isSealed) BlockLayout.Stamps ++ stored else stored)
  }

  private def lead: Int = if (isSealed) BlockLayout.Stamps.length else 0

  /** The position of the topic's column `at`, or -1 where this version does not have it yet. */
  def column(at: Int): Int = if (at < columns.length) lead + at else -1

  /** The position of an extra column, or -1. */
  def extra(name: String): Int = {
    val at = extras.indexOf(name)
    if (at < 0) -1 else lead + columns.length + at
  }
}

object BlockLayout {
  private val Stamps: Array[DataType] = Array(LongType, LongType, TimestampType)
}

/** Where a chunk's bytes lie. */
object Home {

  /** In a frame's body, in a journal file. */
  val Journal = 0

  /** A staged file as a whole, with any number of record batches in it. */
  val Staged = 1

  /** One record batch of a staged file that has been checked. */
  val Checked = 2

  /** One record batch of a sealed file. */
  val Sealed = 3

  /** The same, where not every offset has a record: `count`, `skip` and `take` are of offsets, not of rows. */
  val Sparse = 4

  /** A partition of a topic of Kafka, whose offsets have gaps too. There are no bytes. */
  val Kafka = 5
}

/** Records of one topic and partition that lie together, and the bytes that hold them: a record batch, or a staged file of several.
  *
  * @param stretch first frame of the stretch, to find the records again when the stretch has been sealed
  * @param place place of the first record in the bytes; `until` is the frame after the last that it may belong to
  * @param base offset of the first record in the bytes, which hold `count`
  * @param skip how many of them do not belong to the chunk, `take` how many after those do
  */
final case class Chunk(
    home: Int,
    file: String,
    start: Long,
    bytes: Long,
    crc: Long,
    stretch: Long,
    place: Long,
    until: Long,
    at: Long,
    partition: Int,
    base: Long,
    count: Int,
    skip: Int,
    take: Int,
    layout: BlockLayout) {

  def frame: Long = place >> Place.IndexBits

  /** The records of it with offsets in `[from, until)`; None if there are none. */
  def between(from: Long, until: Long): Option[Chunk] = {
    val low = math.max(base + skip, from)
    val high = math.min(base + skip + take, until)
    if (low >= high) None
    else if (low == base + skip && high == low + take) Some(this)
    else Some(copy(skip = (low - base).toInt, take = (high - low).toInt))
  }

  def damaged(topic: String): DamagedLog = {
    val where = if (home == Home.Sealed || home == Home.Sparse) file else s"frame $frame, in $file"
    LogError.damaged(topic, partition, base, count, s"The checksum does not hold in $where.")
  }

  def missing(topic: String): DamagedLog = LogError.damaged(topic, partition, base, count, s"There is no $file.")
}
