package penstock.kernel.engine

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.TransformWithStateKeyValueRowSchemaUtils
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.statefulprocessor.StatefulProcessorHandleImpl
import org.apache.spark.sql.execution.streaming.state.{PrefixKeyScanStateEncoderSpec, StateStore}
import penstock.kernel.state.PageStore

/** The level's map of pages in a task: the same rows that Spark's own `MapState` would keep, without its encoders.
  *
  * Those are made anew in every task of every batch, by Spark's analyzer and code generator, which takes longer than a small batch itself.
  */
final class StoredPages(store: StateStore, updated: SQLMetric, removed: SQLMetric) {
  private val key = new PageKey
  private val value = new UnsafeRowWriter(1, 4096)
  store.createColFamilyIfAbsent(StoredPages.Name, StoredPages.KeySchema, StoredPages.ValueSchema, PrefixKeyScanStateEncoderSpec(StoredPages.KeySchema, 1))

  def get(group: Long, address: Array[Byte]): Array[Byte] = {
    val found = store.get(key.row(group, address), StoredPages.Name)
    if (found == null) null else found.getBinary(0)
  }

  def put(group: Long, address: Array[Byte], bytes: Array[Byte]): Unit = {
    value.reset()
    value.zeroOutNullBytes()
    value.write(0, bytes)
    store.put(key.row(group, address), value.getRow, StoredPages.Name)
    updated += 1
  }

  def remove(group: Long, address: Array[Byte]): Unit = {
    store.remove(key.row(group, address), StoredPages.Name)
    removed += 1
  }
}

/** The rows under which the map has its pages: two structs of one column each, the group and the address. */
final class PageKey {
  private val key = new UnsafeRowWriter(2, 64)
  private val part = new UnsafeRowWriter(key, 1)

  /** Valid until the next one is asked for. */
  def row(group: Long, address: Array[Byte]): UnsafeRow = {
    key.reset()
    key.zeroOutNullBytes()
    val first = key.cursor()
    part.resetRowWriter()
    part.write(0, group)
    key.setOffsetAndSizeFromPreviousCursor(0, first)
    val second = key.cursor()
    part.resetRowWriter()
    part.write(0, address)
    key.setOffsetAndSizeFromPreviousCursor(1, second)
    key.getRow
  }
}

object StoredPages {
  val Name = "pages"
  private val ValueSchema = Encoders.BINARY.schema
  private val KeySchema = TransformWithStateKeyValueRowSchemaUtils.getCompositeKeySchema(Encoders.scalaLong.schema, Encoders.BINARY.schema)

  /** Spark does not show its store to those who have state: it is asked for by name. */
  def of(handle: StatefulProcessorHandleImpl): StoredPages = {
    val metrics = field[Map[String, SQLMetric]](handle, "metrics")
    new StoredPages(field[StateStore](handle, "store"), metrics("numUpdatedStateRows"), metrics("numRemovedStateRows"))
  }

  private def field[T](handle: StatefulProcessorHandleImpl, name: String): T = {
    val found = classOf[StatefulProcessorHandleImpl].getDeclaredField(name)
    found.setAccessible(true)
    found.get(handle).asInstanceOf[T]
  }
}

/** The pages of one operator in a slot, as entries of the level's map. */
final class SlotPages(pages: StoredPages, group: Long, position: Int) extends PageStore {
  private val headerAddress = Array[Byte](position.toByte)
  private def address(page: Array[Byte]): Array[Byte] = {
    val whole = new Array[Byte](page.length + 1)
    whole(0) = position.toByte
    System.arraycopy(page, 0, whole, 1, page.length)
    whole
  }
  override def header: Array[Byte] = pages.get(group, headerAddress)
  override def header_=(bytes: Array[Byte]): Unit = if (bytes == null) pages.remove(group, headerAddress) else pages.put(group, headerAddress, bytes)
  override def get(page: Array[Byte]): Array[Byte] = pages.get(group, address(page))
  override def put(page: Array[Byte], bytes: Array[Byte]): Unit = pages.put(group, address(page), bytes)
  override def remove(page: Array[Byte]): Unit = pages.remove(group, address(page))
}
