package penstock.kernel.source

import java.io.{BufferedInputStream, BufferedOutputStream, DataInputStream, DataOutputStream}
import java.nio.ByteBuffer
import java.nio.channels.{Channels, FileChannel}
import java.nio.file.{Files, Path, Paths, StandardCopyOption}
import java.nio.file.StandardOpenOption.{CREATE, READ, TRUNCATE_EXISTING, WRITE}
import java.util
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.streaming.{MicroBatchStream, Offset, ReadLimit, SupportsTriggerAvailableNow}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Rows that do not change, as a source of micro-batches: all of them are in the first batch of a query, and in no other.
  *
  * They lie in the file `path`, put there once, so that the first batch is the same whenever it is run.
  */
final class StaticSource extends TableProvider {
  override def supportsExternalMetadata(): Boolean = true
  override def inferSchema(options: CaseInsensitiveStringMap): StructType = throw new UnsupportedOperationException("static rows come with a schema")
  override def getTable(schema: StructType, partitioning: Array[Transform], properties: util.Map[String, String]): Table =
    new StaticTable(schema, properties.get("path"))
}

private final class StaticTable(columns: StructType, path: String) extends Table with SupportsRead {
  override def name(): String = s"static rows in $path"
  override def schema(): StructType = columns
  override def capabilities(): util.Set[TableCapability] = util.EnumSet.of(TableCapability.MICRO_BATCH_READ)
  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = () => new Scan {
    override def readSchema(): StructType = columns
    override def toMicroBatchStream(checkpoint: String): MicroBatchStream = new StaticStream(path, columns.length)
  }
}

private case class StaticOffset(batches: Int) extends Offset {
  override def json(): String = s"""{"static":$batches}"""
}

private final class StaticStream(path: String, width: Int) extends MicroBatchStream with SupportsTriggerAvailableNow {
  override def initialOffset(): Offset = StaticOffset(0)
  override def latestOffset(): Offset = StaticOffset(1)
  override def latestOffset(start: Offset, limit: ReadLimit): Offset = latestOffset()
  override def prepareForTriggerAvailableNow(): Unit = ()
  override def deserializeOffset(json: String): Offset = StaticOffset(if (json.contains("1")) 1 else 0)
  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = if (start == end) Array.empty else Array(StaticRows(path))
  override def createReaderFactory(): PartitionReaderFactory = StaticReaders(width)
  override def commit(end: Offset): Unit = ()
  override def stop(): Unit = ()
}

private case class StaticRows(path: String) extends InputPartition

private case class StaticReaders(width: Int) extends PartitionReaderFactory {
  override def createReader(partition: InputPartition): PartitionReader[InternalRow] = new PartitionReader[InternalRow] {
    private val in = new DataInputStream(new BufferedInputStream(Files.newInputStream(Paths.get(partition.asInstanceOf[StaticRows].path)), 1 << 16))
    private val row = new UnsafeRow(width)
    private var left = in.readLong()
    override def next(): Boolean = {
      val has = left > 0
      if (has) {
        val bytes = new Array[Byte](in.readInt())
        in.readFully(bytes)
        row.pointTo(bytes, bytes.length)
        left -= 1
      }
      has
    }
    override def get(): InternalRow = row
    override def close(): Unit = in.close()
  }
}

/** `[number of rows 8]`, then `[length 4][row]` for each row, in Spark's UnsafeRow format. A file that is there is whole, and stays. */
object StaticFile {
  def write(rows: Iterator[UnsafeRow], path: Path): Unit = {
    val unfinished = path.resolveSibling(s".${path.getFileName}")
    val file = FileChannel.open(unfinished, CREATE, WRITE, TRUNCATE_EXISTING)
    try {
      val out = new DataOutputStream(new BufferedOutputStream(Channels.newOutputStream(file), 1 << 16))
      var count = 0L
      out.writeLong(count)
      rows.foreach { row =>
        out.writeInt(row.getSizeInBytes)
        out.write(row.getBytes)
        count += 1
      }
      out.flush()
      file.write(ByteBuffer.allocate(8).putLong(0, count), 0)
      file.force(true)
    } finally file.close()
    Files.move(unfinished, path, StandardCopyOption.ATOMIC_MOVE)
    val folder = FileChannel.open(path.getParent, READ)
    try folder.force(true) finally folder.close()
  }
}
