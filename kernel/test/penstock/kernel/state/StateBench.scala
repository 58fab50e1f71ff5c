package penstock.kernel.state

import java.lang.management.ManagementFactory
import java.util.{Comparator, HashMap, Random}
import java.nio.ByteBuffer

import org.apache.spark.unsafe.Platform

/** How long paged state takes, pages in a plain map: `java ... penstock.kernel.state.StateBench`. Processor time, not the clock's. */
object StateBench {
  private val Slots = 64
  private val threads = ManagementFactory.getThreadMXBean

  /** No counting, no checking. */
  private final class Plain extends PageStore {
    private val pages = new HashMap[ByteBuffer, Array[Byte]]
    var header: Array[Byte] = null
    def get(page: Array[Byte]): Array[Byte] = pages.get(ByteBuffer.wrap(page))
    def put(page: Array[Byte], bytes: Array[Byte]): Unit = pages.put(ByteBuffer.wrap(page), bytes)
    def remove(page: Array[Byte]): Unit = pages.remove(ByteBuffer.wrap(page))
    def count: Int = pages.size
    def bytes: Long = pages.values.stream.mapToLong(_.length.toLong).sum
  }

  def main(args: Array[String]): Unit = {
    dense(100_000)
    sparse(1_000_000, 1_000)
    growing(1_000_000, 1_000)
    collection(1_000_000, 1_000)
    small(100_000, 5)
  }

  /** Keyed count: the keys of a batch by slot, shuffled, as rows of an UnsafeRow's length. */
  private def keys(ids: Array[Int]): Array[Array[Key]] = {
    val all = ids.map { id =>
      val bytes = new Array[Byte](16)
      Platform.putLong(bytes, Platform.BYTE_ARRAY_OFFSET + 8, id.toLong)
      new Key(bytes, 0, 16, Model.hash(bytes))
    }
    val groups = all.groupBy(key => (key.hash & (Slots - 1)).toInt)
    Array.tabulate(Slots)(slot => groups.getOrElse(slot, Array.empty[Key]))
  }

  private def count(stores: Array[Plain], keys: Array[Array[Key]]): Unit = {
    var i = 0
    while (i < Slots) {
      if (keys(i).length > 0) {
        val slot = new Slot(stores(i))
        var j = 0
        while (j < keys(i).length) {
          val state = slot.state(keys(i)(j))
          var value = state.value
          if (value == null) value = new Array[Byte](24)
          Platform.putLong(value, Platform.BYTE_ARRAY_OFFSET + 8, Platform.getLong(value, Platform.BYTE_ARRAY_OFFSET + 8) + 1)
          state.value = value
          j += 1
        }
        slot.close()
      }
      i += 1
    }
  }

  private def dense(n: Int): Unit = {
    val stores = Array.fill(Slots)(new Plain)
    val all = keys(new Random(1).ints(0, Int.MaxValue).distinct.limit(n).toArray)
    val times = (1 to 60).map(_ => millis(count(stores, all)))
    say(f"$n keys, all touched", times)
    println(f"      ${stores.map(_.count).sum} pages, ${stores.map(_.bytes).sum / n} bytes a key")
  }

  private def sparse(n: Int, touched: Int): Unit = {
    val stores = Array.fill(Slots)(new Plain)
    count(stores, keys(Array.range(0, n)))
    val random = new Random(2)
    val batches = Array.fill(300)(keys(random.ints(touched.toLong, 0, n).distinct.toArray))
    say(f"$touched of $n keys touched", batches.toSeq.map(batch => millis(count(stores, batch))))
  }

  private def growing(n: Int, added: Int): Unit = {
    val stores = Array.fill(Slots)(new Plain)
    count(stores, keys(Array.range(0, n)))
    val batches = Array.tabulate(300)(i => keys(Array.range(n + i * added, n + (i + 1) * added)))
    say(f"$added keys added to $n", batches.toSeq.map(batch => millis(count(stores, batch))))
  }

  private val Orders = Array[Comparator[Array[Byte]]](null)

  private def collection(n: Int, touched: Int): Unit = {
    val store = new Plain
    val key = Model.key(Model.number(1))
    val random = new Random(3)
    def batch(entries: Array[Int]): Unit = {
      val slot = new Slot(store, Slot.Limit, Orders)
      val list = slot.state(key).entries(0)
      var i = 0
      while (i < entries.length) {
        list.put(Model.number(entries(i)), Model.random(random, 16))
        i += 1
      }
      slot.close()
    }
    say(f"a collection of $n entries put in one batch", Seq(millis(batch(random.ints(n.toLong, 0, Int.MaxValue).toArray))))
    val batches = Array.fill(200)(random.ints(touched.toLong, 0, Int.MaxValue).toArray)
    say(f"$touched entries added to it", batches.toSeq.map(entries => millis(batch(entries))))
    say(f"one entry added to it", batches.toSeq.map(entries => millis(batch(entries.take(1)))))
    say(f"walked through", (1 to 10).map(_ => millis {
      val cursor = new Slot(store, Slot.Limit, Orders).state(key).entries(0).ascending
      while (cursor.next()) cursor.value
    }))
  }

  /** A join's side: a few rows behind every key, one added and one removed. */
  private def small(n: Int, rows: Int): Unit = {
    val stores = Array.fill(Slots)(new Plain)
    val all = keys(Array.range(0, n))
    def batch(round: Int): Unit = (0 until Slots).foreach { i =>
      val slot = new Slot(stores(i), Slot.Limit, Orders)
      var j = 0
      while (j < all(i).length) {
        val list = slot.state(all(i)(j)).entries(0)
        list.put(Model.number(round), new Array[Byte](4))
        list.remove(Model.number(round - rows))
        j += 1
      }
      slot.close()
    }
    say(f"$n keys with collections of $rows, one entry in, one out", (1 to 40).map(round => millis(batch(round))))
  }

  private def millis(body: => Unit): Double = {
    val start = threads.getCurrentThreadCpuTime
    body
    (threads.getCurrentThreadCpuTime - start) / 1e6
  }

  private def say(what: String, times: Seq[Double]): Unit = {
    val warm = times.takeRight(times.length - times.length / 2).sorted
    println(f"${warm(warm.length / 2)}%9.3f ms  $what (best ${warm.head}%.3f, first ${times.head}%.1f)")
  }
}
