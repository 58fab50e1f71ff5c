package org.apache.spark.sql.penstock

import java.io.FileOutputStream
import java.nio.file.Path
import org.apache.arrow.vector.VectorSchemaRoot
import org.apache.arrow.vector.ipc.ArrowFileWriter
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeRow}
import org.apache.spark.sql.execution.arrow.ArrowWriter
import org.apache.spark.sql.types.{BooleanType, StructType}
import org.apache.spark.sql.util.ArrowUtils
import penstock.kernel.engine.{Change, Sink}

/** Changes of a sink as an Arrow file: its columns, `_deleted`, and `_replaces` where it has a key. */
object ArrowFiles {
  private val Rows = 1 << 16

  def write(sink: Sink, changes: Array[Change], path: Path): Unit = {
    val keyed = sink.key.nonEmpty
    val plain = sink.schema.asNullable // as topics have it, inside values too
    val schema = if (keyed) plain.add("_deleted", BooleanType).add("_replaces", plain) else plain.add("_deleted", BooleanType)
    val allocator = ArrowUtils.rootAllocator.newChildAllocator("penstock-changes", 0, Long.MaxValue)
    val root = VectorSchemaRoot.create(ArrowUtils.toArrowSchema(schema, "UTC", true, false), allocator)
    val out = new FileOutputStream(path.toFile)
    val file = new ArrowFileWriter(root, null, out.getChannel)
    try {
      file.start()
      val writer = ArrowWriter.create(root)
      var inBatch = 0
      def finish(): Unit = if (inBatch > 0) {
        writer.finish()
        file.writeBatch()
        writer.reset()
        inBatch = 0
      }
      val row = new ChangeRow(sink, keyed)
      changes.foreach { change =>
        var times = change.times
        while (times > 0) {
          writer.write(row(change))
          inBatch += 1
          if (inBatch == Rows) finish()
          times -= 1
        }
      }
      finish()
      file.end()
    } finally {
      file.close()
      out.close()
      root.close()
      allocator.close()
    }
  }

  /** A change as a row of the file. A deletion under a key holds the key's columns only; the row that left is in `_replaces`. */
  private final class ChangeRow(sink: Sink, keyed: Boolean) {
    private val width = sink.schema.length
    private val types = sink.schema.map(_.dataType).toArray
    private val after = new UnsafeRow(width)
    private val before = new UnsafeRow(width)
    private val values = new GenericInternalRow(if (keyed) width + 2 else width + 1)

    def apply(change: Change): InternalRow = {
      val gone = change.after == null
      val row = if (gone) before else after
      if (change.after != null) after.pointTo(change.after, change.after.length)
      if (change.before != null) before.pointTo(change.before, change.before.length)
      var i = 0
      while (i < width) {
        val hidden = gone && keyed && !sink.key.contains(i)
        values.update(i, if (hidden || row.isNullAt(i)) null else row.get(i, types(i)))
        i += 1
      }
      values.update(width, gone)
      if (keyed) values.update(width + 1, if (change.before == null) null else before)
      values
    }
  }
}
