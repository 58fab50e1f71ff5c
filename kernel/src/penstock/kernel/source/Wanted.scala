package penstock.kernel.source

import org.apache.spark.sql.types.{BooleanType, DataType, IntegerType, LongType, StructField, StructType, TimestampType}
import org.apache.spark.sql.vectorized.ColumnVector
import penstock.kernel.arrow.{Columns, Made, RecordBytes}

/** A column that was asked for: how its vector is had from a chunk, whose record batch is null where nothing stored is needed of it. */
abstract class Wanted extends Serializable {
  def what: DataType

  /** Its position among the stored columns of a record batch, or -1 if it is not stored. */
  def position(layout: BlockLayout): Int

  /** Its values where they are not stored. */
  def made(chunk: Chunk, stored: RecordBytes, stamps: Map[String, Stamps]): ColumnVector

  def isStored(layout: BlockLayout): Boolean = position(layout) >= 0

  final def vector(chunk: Chunk, stored: RecordBytes, stamps: Map[String, Stamps]): ColumnVector = {
    val at = position(chunk.layout)
    if (at < 0) made(chunk, stored, stamps) else Wanted.column(chunk, stored, at, what)
  }
}

object Wanted {

  /** The columns of `schema`, which are columns of the topic or hidden ones. */
  def of(schema: StructType, topic: StructType, others: Iterable[String]): Array[Wanted] = schema.fields.map { field =>
    val at = topic.fieldNames.indexOf(field.name)
    if (at >= 0) new Plain(at, topic(at).dataType) else hidden(Hidden.columns(topic, others)(field.name))
  }

  /** The offsets of all rows of a sealed record batch. */
  def offsets(chunk: Chunk, stored: RecordBytes): ColumnVector =
    column(chunk.copy(skip = 0, take = stored.rows), stored, 0, LongType)

  private def hidden(field: StructField): Wanted = field.name match {
    case Hidden.Partition => new Stamp(-1, IntegerType, chunk => new Made.ConstantInt(IntegerType, chunk.partition))
    case Hidden.Offset => new Stamp(0, LongType, chunk => new Made.RisingLong(LongType, chunk.base + chunk.skip))
    case Hidden.Place => new Stamp(1, LongType, chunk => new Made.RisingLong(LongType, chunk.place + chunk.skip))
    case Hidden.AppendedAt => new Stamp(2, TimestampType, chunk => new Made.ConstantLong(TimestampType, chunk.at))
    case name if name.startsWith(Hidden.Watermark) => new Watermark(name)
    case Hidden.Deleted => new Extra(field.name, BooleanType, () => new Made.ConstantBoolean(BooleanType, false))
    case other => new Extra(other, field.dataType, () => new Made.Null(field.dataType))
  }

  private def column(chunk: Chunk, stored: RecordBytes, at: Int, what: DataType): ColumnVector = {
    val layout = chunk.layout.layout
    Columns.of(stored, layout.types(at), what, layout.nodes(at), layout.buffers(at), chunk.skip, chunk.take)
  }

  /** A column of the topic; null in blocks that are older than it. */
  private final class Plain(at: Int, val what: DataType) extends Wanted {
    override def position(layout: BlockLayout): Int = layout.column(at)
    override def made(chunk: Chunk, stored: RecordBytes, stamps: Map[String, Stamps]): ColumnVector = new Made.Null(what)
  }

  /** What a record may carry besides the topic's columns. */
  private final class Extra(name: String, val what: DataType, absent: () => ColumnVector) extends Wanted {
    override def position(layout: BlockLayout): Int = layout.extra(name)
    override def made(chunk: Chunk, stored: RecordBytes, stamps: Map[String, Stamps]): ColumnVector = absent()
  }

  /** What follows from where a record stands: stored in sealed files (except the partition), made elsewhere. */
  private final class Stamp(at: Int, val what: DataType, make: Chunk => ColumnVector) extends Wanted {
    override def position(layout: BlockLayout): Int = if (layout.isSealed) at else -1
    override def made(chunk: Chunk, stored: RecordBytes, stamps: Map[String, Stamps]): ColumnVector = make(chunk)
  }

  /** A watermark before a record's frame: the same for a block, by place in sealed files. */
  private final class Watermark(name: String) extends Wanted {
    override def what: DataType = TimestampType
    override def position(layout: BlockLayout): Int = -1
    override def isStored(layout: BlockLayout): Boolean = layout.isSealed
    override def made(chunk: Chunk, stored: RecordBytes, stamps: Map[String, Stamps]): ColumnVector =
      if (chunk.layout.isSealed) stamps(name).column(column(chunk, stored, 1, LongType)) else stamps(name).constant(chunk.frame)
  }
}
