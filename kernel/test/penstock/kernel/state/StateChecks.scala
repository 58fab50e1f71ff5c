package penstock.kernel.state

import java.util.{Comparator, Random, TreeMap}

import penstock.kernel.Checks
import penstock.kernel.Checks.{equal, holds}
import penstock.kernel.state.Model.{key, number, same, show}

/** Paged state against plain maps. */
object StateChecks {
  private val Orders = Array[Comparator[Array[Byte]]](null, Model.Zigzag)

  def main(args: Array[String]): Unit = {
    val checks = new Checks(args)
    checks.seeded("random batches equal a plain map", 4)(random => batches(random, 512, keys = 400, length = 12, Model.hash))
    checks.seeded("random batches with few keys and large collections", 5)(random => batches(random, 256, keys = 4, length = 12, Model.hash))
    checks.seeded("random batches with pages of the usual size", 2)(random => batches(random, Slot.Limit, keys = 200, length = 40, Model.hash))
    checks.seeded("random batches where all hashes are equal", 3)(random => batches(random, 512, keys = 60, length = 12, _ => 7L << 40))
    checks.seeded("random batches where hashes differ in two bits only", 3)(random =>
      batches(random, 512, keys = 200, length = 12, bytes => Model.hash(bytes) & (3L << 62)))
    checks.seeded("random batches with huge keys, sub-keys and values", 2)(random => batches(random, 512, keys = 40, length = 20_000, Model.hash))
    checks.seeded("the order of calls does not show in the pages", 2)(orderOfCalls)
    checks.check("keys come and go: buckets split and merge, the floor is nothing")(comeAndGo())
    checks.check("a slot of 20,000 keys has pages of about five eighths of the limit")(fill())
    checks.check("a collection of a million entries costs a handful of pages")(million())
    checks.check("a collection that became small lies in the entry of its key again")(backInline())
    checks.check("a cursor survives what happens around it")(changesOnTheWay())
    checks.check("a walk through more pages than may stay in memory sees every change")(longWalks())
    checks.check("keys may be changed, added and removed while all are visited")(visiting())
    checks.check("clearing a large collection does not read its leaves")(clearing())
    checks.check("an array handed out and changed is written when it is handed in")(inPlace())
    checks.check("a bucket is touched once whatever the number of its keys")(oncePerPage())
    PileChecks.run(checks)
    checks.close()
  }

  private def batches(random: Random, limit: Int, keys: Int, length: Int, hash: Array[Byte] => Long): Unit = {
    val store = new MapStore
    val model = new Model(Orders)
    val names = Array.fill(keys)(Model.random(random, 1 + random.nextInt(length)))
    (1 to 25).foreach { batch =>
      val slot = new Slot(store.begin(), limit, Orders)
      val ops = new Ops(random, slot, model, names, hash, length)
      val bias = if (batch % 8 < 5) 0.75 else 0.2 // grow for a while, then shrink
      (1 to random.nextInt(600)).foreach(_ => ops.one(bias))
      slot.close()
      model.tidy()
      equal(slot.keys, model.keys.size.toLong, "keys after closing")
      equal(slot.pages, store.pages.size.toLong, "pages after closing")
      if (batch % 4 == 0) Model.sameSlot(store, limit, Orders, hash, model)
    }
    val slot = new Slot(store.begin(), limit, Orders)
    model.keys.keySet.forEach(name => slot.state(new Key(name, 0, name.length, hash(name))).clear())
    slot.close()
    holds(store.isEmpty, s"${store.content} is left when everything was deleted")
  }

  private def orderOfCalls(random: Random): Unit = {
    val limit = 512
    val stores = Array.fill(2)(new MapStore)
    (1 to 5).foreach { _ =>
      val steps = Array.tabulate(800)(i => (number(random.nextInt(30)), number(i), Model.random(random, random.nextInt(30))))
      stores.indices.foreach { i =>
        val slot = new Slot(stores(i).begin(), limit, Orders)
        val shuffled = if (i == 0) steps else steps.reverse
        if (i == 1) slot.state(key(number(99))).value = number(1)
        shuffled.foreach { case (k, sub, v) =>
          val state = slot.state(key(k))
          if (i == 1) state.entries(0).put(v, sub)
          if (v.length < 5) state.entries(0).remove(sub) else state.entries(0).put(sub, v)
          state.entries(1).put(sub, sub)
          if (i == 1) state.entries(0).remove(v)
        }
        if (i == 1) slot.state(key(number(99))).value = null
        slot.close()
      }
      equal(stores(0).content, stores(1).content, "pages after the same batch in another order")
    }
  }

  private def comeAndGo(): Unit = {
    val store = new MapStore
    def batch(range: Range, value: Int => Array[Byte]): Unit = {
      val slot = new Slot(store.begin())
      range.foreach(i => slot.state(key(number(i))).value = value(i))
      slot.close()
    }
    batch(0 until 20_000, i => number(i))
    val most = store.pages.size
    (0 until 20_000 by 500).foreach { i =>
      val before = store.pages.size
      batch(i until i + 500, _ => null)
      holds(store.pages.size <= before, s"${store.pages.size} pages after deleting, $before before")
      if (i == 15_000) holds(store.pages.size < most / 2, s"${store.pages.size} pages for a quarter of the keys, $most for all")
    }
    holds(store.isEmpty, "something is left when everything was deleted")
  }

  private def fill(): Unit = {
    val store = new MapStore
    (0 until 20_000 by 100).foreach { i =>
      val slot = new Slot(store.begin())
      (i until i + 100).foreach(j => slot.state(key(number(j))).value = new Array[Byte](24))
      slot.close()
      holds(store.writes <= 1 + 100 + 2 + 100 / 10, s"${store.writes} writes for 100 new keys")
    }
    val average = store.bytes / store.pages.size
    holds(average > Slot.Limit / 2 && average < Slot.Limit * 64 / 100, s"pages of $average bytes on average")
    val largest = store.pages.values.stream.mapToInt(_.length).max.getAsInt
    holds(largest < 3 * Slot.Limit / 2, s"a page of $largest bytes")
  }

  private def million(): Unit = {
    val store = new MapStore
    val slot = new Slot(store.begin(), 4096, Orders)
    val entries = slot.state(key(number(1))).entries(0)
    (0 until 1_000_000).foreach(i => entries.put(number(i * 7919L % 1_000_000), number(i)))
    slot.close()
    def touch(what: Entries => Unit, reads: Int, writes: Int): Unit = {
      val slot = new Slot(store.begin(), 4096, Orders)
      what(slot.state(key(number(1))).entries(0))
      slot.close()
      holds(store.reads <= reads && store.writes <= writes, s"${store.reads} reads, ${store.writes} writes; wanted $reads, $writes")
    }
    touch(entries => same(entries.get(number(7919)), number(1), "entry 7919"), 5, 0)
    touch(entries => entries.put(number(500_000), number(-1)), 5, 1)
    touch(entries => entries.remove(number(500_000)), 5, 1)
    touch(entries => entries.put(number(500_000), number(3)), 5, 2)
    touch(entries => same(entries.firstKey, number(0), "first"), 5, 0)
    touch(entries => same(entries.lastKey, number(999_999), "last"), 5, 0)
    touch(steps(100, _), 7, 0)
    touch(entries => holds(!entries.isEmpty, "it is empty"), 5, 0)
  }

  private def steps(n: Int, entries: Entries): Unit = {
    val cursor = entries.from(number(700_000))
    (0 until n).foreach { i =>
      cursor.next()
      same(cursor.key, number(700_000 + i), s"step $i")
    }
  }

  private def backInline(): Unit = {
    val store = new MapStore
    def batch(change: Entries => Unit): Unit = {
      val slot = new Slot(store.begin(), 1024, Orders)
      slot.state(key(number(2))).value = number(2)
      change(slot.state(key(number(1))).entries(1))
      slot.close()
    }
    batch(entries => (0 until 5).foreach(i => entries.put(number(i), number(i))))
    equal(store.pages.size, 1, "pages of a small collection")
    batch(entries => (0 until 5_000).foreach(i => entries.put(number(i), number(i))))
    holds(store.pages.size > 100, s"${store.pages.size} pages of a large collection")
    batch(entries => (3 until 5_000).foreach(i => entries.remove(number(i))))
    equal(store.pages.size, 1, "pages of a collection that became small")
  }

  private def changesOnTheWay(): Unit = {
    val store = new MapStore
    val slot = new Slot(store.begin(), 512, Orders)
    val entries = slot.state(key(number(1))).entries(0)
    (0 until 3_000).foreach(i => entries.put(number(2 * i), number(i)))
    val up = entries.from(number(100))
    var n = 0
    while (up.next()) {
      entries.remove(up.key)
      entries.remove(number(n))
      entries.put(number(-1 - n), number(n)) // unsigned: far ahead
      if (n < 10) up.value = number(n)
      n += 1
    }
    holds(n == 5_900 && !up.next(), s"$n steps")
    val down = entries.descending
    while (down.next()) if (down.key(7) == 5) entries.clear()
    holds(entries.isEmpty, "it is not empty")
    slot.close()
    holds(store.isEmpty, "something is left")
  }

  private def longWalks(): Unit = {
    val store = new MapStore
    store.rereads = true
    val wanted = new TreeMap[Array[Byte], Array[Byte]](java.util.Arrays.compareUnsigned(_: Array[Byte], _: Array[Byte]))
    def batch(change: Entries => Unit): Unit = {
      val slot = new Slot(store.begin(), 128, Orders)
      change(slot.state(key(number(1))).entries(0))
      slot.close()
    }
    def put(entries: Entries, k: Array[Byte], v: Array[Byte]): Unit = {
      entries.put(k, v)
      wanted.put(k, v)
    }
    batch(entries => (0 until 40_000).foreach(i => put(entries, number(i), number(i))))
    holds(store.pages.size > 2 * Tree.Crowd, s"only ${store.pages.size} pages")
    batch { entries =>
      Model.sameWalk(entries.descending, wanted.descendingMap, "first walk")
      val outer = entries.from(number(30_000))
      (0 until 100).foreach { i =>
        outer.next()
        if (i % 20 == 0) Model.sameWalk(entries.ascending, wanted, s"walk $i")
        put(entries, outer.key, number(-i))
        same(outer.value, number(-i), s"value $i after it was put")
        put(entries, number(30_000 + 2 * i + 1), number(i))
      }
    }
    batch(entries => Model.sameWalk(entries.ascending, wanted, "in the end"))
  }

  private def visiting(): Unit = {
    val store = new MapStore
    val model = new Model(Orders)
    def slot = new Slot(store.begin(), 512, Orders)
    def put(slot: Slot, i: Int, value: Array[Byte]): Unit = {
      slot.state(key(number(i))).value = value
      model.state(number(i)).value = value
    }
    val first = slot
    (0 until 3_000).foreach(i => put(first, i, number(i)))
    first.close()
    val second = slot
    var visits = 0
    second.foreach { (found, state) =>
      val i = java.nio.ByteBuffer.wrap(found.toBytes).getLong.toInt
      if (i < 3_000) visits += 1
      if (i % 3 == 0) put(second, i, null)
      else if (i % 3 == 1 && i < 3_000) put(second, i + 10_000, state.value)
    }
    second.close()
    model.tidy()
    equal(visits, 3_000, "visits")
    Model.sameSlot(store, 512, Orders, Model.hash, model)
  }

  private def clearing(): Unit = {
    val store = new MapStore
    val slot = new Slot(store.begin(), 512, Orders)
    (0 until 50_000).foreach(i => slot.state(key(number(1))).entries(0).put(number(i), number(i)))
    slot.state(key(number(1))).value = new Array[Byte](100_000)
    slot.state(key(number(2))).value = number(2)
    slot.close()
    val next = new Slot(store.begin(), 512, Orders)
    next.state(key(number(1))).clear()
    val entries = next.state(key(number(1))).entries(0)
    holds(entries.isEmpty && entries.firstKey == null && !entries.descending.next(), "it is not empty")
    next.close()
    holds(store.reads < 200, s"${store.reads} reads")
    equal(store.pages.size, 1, "pages left")
  }

  private def inPlace(): Unit = {
    val store = new MapStore
    def batch(change: State => Unit): Int = {
      val slot = new Slot(store.begin(), 512, Orders)
      change(slot.state(key(number(1))))
      slot.close()
      store.writes
    }
    batch { state =>
      state.value = number(1)
      state.entries(0).put(number(1), number(1))
    }
    val writes = batch { state =>
      val value = state.value
      value(0) = 9
      state.value = value
      val entry = state.entries(0).get(number(1))
      entry(0) = 8
      state.entries(0).put(number(1), entry)
    }
    equal(writes, 1, "writes")
    val none = batch { state =>
      equal((state.value(0), state.entries(0).get(number(1))(0)), (9.toByte, 8.toByte), "first bytes")
      state.value = state.value
      state.entries(0).put(number(1), state.entries(0).get(number(1)))
      state.entries(1).put(number(5), number(5))
      state.entries(1).remove(number(5))
    }
    equal(none, 0, "writes of the same again")
  }

  private def oncePerPage(): Unit = {
    val store = new MapStore
    val slot = new Slot(store.begin())
    (0 until 10_000).foreach(i => slot.state(key(number(i))).value = new Array[Byte](24))
    slot.close()
    val next = new Slot(store.begin())
    (0 until 10_000).foreach { i =>
      val state = next.state(key(number(i)))
      holds(state eq next.state(key(number(i))), "another state for the same key")
      state.value = number(i) ++ number(i) ++ number(i)
    }
    next.close()
    equal((store.reads, store.writes), (1 + store.pages.size, store.pages.size), "reads and writes")
  }
}

/** Random calls on a slot and on its model, every answer compared. */
final class Ops(random: Random, slot: Slot, model: Model, names: Array[Array[Byte]], hash: Array[Byte] => Long, length: Int) {

  /** One call; `growth` is the share of those that add. */
  def one(growth: Double): Unit = {
    val name = names(random.nextInt(names.length))
    val padded = new Array[Byte](3) ++ name
    val state = slot.state(new Key(padded, 3, name.length, hash(name)))
    val wanted = model.state(name)
    random.nextInt(40) match {
      case 0                => same(state.value, wanted.value, s"value of ${show(name)}")
      case 1 if growth < .5 => clear(state, wanted)
      case n if n < 8       => value(state, wanted, growth)
      case n =>
        val i = n & 1
        entries(state.entries(i), wanted.lists(i), growth)
    }
    equal(state.isEmpty, wanted.isEmpty, s"emptiness of ${show(name)}")
  }

  private def clear(state: State, wanted: ModelState): Unit = {
    state.clear()
    wanted.value = null
    wanted.lists.foreach(_.clear())
  }

  private def value(state: State, wanted: ModelState, growth: Double): Unit = {
    val bytes = if (random.nextDouble() < growth) Model.random(random, size) else null
    state.value = bytes
    wanted.value = bytes
  }

  private def entries(found: Entries, wanted: TreeMap[Array[Byte], Array[Byte]], growth: Double): Unit = {
    val key = near(wanted)
    random.nextInt(6) match {
      case 0 => same(found.get(key), wanted.get(key), s"entry ${show(key)}")
      case 1 => walk(found, wanted, key)
      case 2 => burst(found, wanted, growth)
      case _ => change(found, wanted, key, growth)
    }
    same(found.firstKey, if (wanted.isEmpty) null else wanted.firstKey, "first key")
    same(found.lastKey, if (wanted.isEmpty) null else wanted.lastKey, "last key")
  }

  private def burst(found: Entries, wanted: TreeMap[Array[Byte], Array[Byte]], growth: Double): Unit =
    (1 to random.nextInt(if (length > 1000) 5 else 60)).foreach(_ => change(found, wanted, near(wanted), growth))

  private def change(found: Entries, wanted: TreeMap[Array[Byte], Array[Byte]], key: Array[Byte], growth: Double): Unit =
    if (random.nextDouble() < growth) {
      val value = Model.random(random, size)
      found.put(key, value)
      wanted.put(key, value)
    } else equal(found.remove(key), wanted.remove(key) != null, s"whether ${show(key)} was there")

  /** A key of the collection, mostly; else any. */
  private def near(wanted: TreeMap[Array[Byte], Array[Byte]]): Array[Byte] = {
    val any = Model.random(random, size)
    val there = wanted.ceilingKey(any)
    if (there == null || random.nextInt(5) < 2) any else there
  }

  private def walk(found: Entries, wanted: TreeMap[Array[Byte], Array[Byte]], key: Array[Byte]): Unit = random.nextInt(6) match {
    case 0 => Model.sameWalk(found.ascending, wanted, "ascending")
    case 1 => Model.sameWalk(found.descending, wanted.descendingMap, "descending")
    case 2 => Model.sameWalk(found.from(key), wanted.tailMap(key, true), "from")
    case 3 => Model.sameWalk(found.after(key), wanted.tailMap(key, false), "after")
    case 4 => Model.sameWalk(found.to(key), wanted.headMap(key, true).descendingMap, "to")
    case 5 => Model.sameWalk(found.before(key), wanted.headMap(key, false).descendingMap, "before")
  }

  /** Small mostly; one in twenty as long as may be. */
  private def size: Int = if (random.nextInt(20) == 0) random.nextInt(10 * length) else random.nextInt(math.min(length, 40))
}
