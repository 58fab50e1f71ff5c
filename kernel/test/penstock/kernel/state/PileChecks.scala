package penstock.kernel.state

import java.util.{Comparator, Random, TreeMap}

import penstock.kernel.Checks
import penstock.kernel.Checks.{equal, holds}
import penstock.kernel.state.Model.{key, number, show}

/** Piles against plain maps of weights. */
object PileChecks {
  private val Orders = Array[Comparator[Array[Byte]]](null)
  private val Sums = Array[Sum](Weights, Weights)
  private type Weighed = TreeMap[Array[Byte], Long]

  /** Values are weights. */
  private object Weights extends Sum {
    def apply(older: Array[Byte], newer: Array[Byte]): Array[Byte] = if (of(older) + of(newer) == 0) null else number(of(older) + of(newer))
    def of(value: Array[Byte]): Long = new java.math.BigInteger(value).longValue
  }

  def run(checks: Checks): Unit = {
    checks.seeded("piles equal plain maps of weights", 6)(random => batches(random, 512, keys = 40, rows = 60, most = 60))
    checks.seeded("piles of few keys with many rows", 4)(random => batches(random, 256, keys = 3, rows = 3000, most = 900))
    checks.seeded("piles with rows of all sizes", 2)(random => batches(random, 512, keys = 6, rows = 400, most = 90, length = 3000))
    checks.check("an addition to a large pile reads and writes a few pages")(additions())
    checks.check("what comes and goes again leaves a pile as large as its rows")(churn())
    checks.check("equal rows are one entry in the end")(repeated())
  }

  private def batches(random: Random, limit: Int, keys: Int, rows: Int, most: Int, length: Int = 12): Unit = {
    val store = new MapStore
    val model = Array.fill(keys, Sums.length)(new Weighed(java.util.Arrays.compareUnsigned(_: Array[Byte], _: Array[Byte])))
    val names = Array.tabulate(rows)(i => number(i) ++ Model.random(random, random.nextInt(length)))
    (1 to 40).foreach { batch =>
      val slot = new Slot(store.begin(), limit, Orders, Sums)
      val growth = if (batch % 10 < 6) 0.7 else 0.1
      (1 to random.nextInt(most)).foreach { _ =>
        val k = random.nextInt(keys)
        val pile = random.nextInt(Sums.length)
        one(random, slot.state(key(number(k))), pile, model(k)(pile), names(random.nextInt(rows)), growth)
      }
      slot.close()
      same(store, limit, model)
    }
    val slot = new Slot(store.begin(), limit, Orders, Sums)
    model.indices.foreach { k =>
      val state = slot.state(key(number(k)))
      state.entries(0).clear()
      model(k).zipWithIndex.foreach { case (wanted, pile) => wanted.forEach((row, weight) => state.pile(pile).add(row, number(-weight), -weight)) }
    }
    slot.close()
    holds(store.isEmpty, s"${store.pages.size} pages are left when everything was taken back")
  }

  private def one(random: Random, state: State, i: Int, wanted: Weighed, row: Array[Byte], growth: Double): Unit = {
    val there = wanted.getOrDefault(row, 0L)
    val weight = if (random.nextDouble() < growth) 1L + random.nextInt(2) else -there
    if (random.nextInt(50) == 0) {
      state.pile(i).clear()
      wanted.clear()
    } else if (weight != 0) {
      state.pile(i).add(row, number(weight), weight)
      if (there + weight == 0) wanted.remove(row) else wanted.put(row, there + weight)
    }
    if (random.nextInt(10) == 0) sameWalk(state.pile(i), wanted)
    if (random.nextInt(20) == 0) state.entries(0).put(row, row)
    if (random.nextInt(20) == 0) state.entries(0).clear()
  }

  private def sameWalk(pile: Pile, wanted: Weighed): Unit = {
    val found = new Weighed(java.util.Arrays.compareUnsigned(_: Array[Byte], _: Array[Byte]))
    val cursor = pile.walk
    while (cursor.next()) found.merge(cursor.key, Weights.of(cursor.value), (a: Long, b: Long) => a + b)
    found.values.removeIf(_ == 0L)
    equal(text(found), text(wanted), "rows of the pile")
    equal(pile.isEmpty, wanted.isEmpty, "emptiness")
  }

  private def text(rows: Weighed): Seq[String] = {
    val lines = Seq.newBuilder[String]
    rows.forEach((row, weight) => lines += s"${show(row)} $weight")
    lines.result()
  }

  private def same(store: MapStore, limit: Int, model: Array[Array[Weighed]]): Unit = {
    val slot = new Slot(store.begin(), limit, Orders, Sums)
    model.indices.foreach(k => model(k).indices.foreach(i => sameWalk(slot.state(key(number(k))).pile(i), model(k)(i))))
  }

  private def filled(store: MapStore, rows: Int): Unit = batch(store)(pile => (0 until rows).foreach(i => pile.add(number(i), number(1), 1)))

  private def batch(store: MapStore)(change: Pile => Unit): Unit = {
    val slot = new Slot(store.begin(), 4096, Orders, Sums)
    change(slot.state(key(number(1))).pile(0))
    slot.close()
  }

  private def additions(): Unit = {
    val store = new MapStore
    filled(store, 100_000)
    var touched = 0
    (0 until 200).foreach { i =>
      batch(store)(pile => (0 until 5).foreach(j => pile.add(number(1_000_000 + 5 * i + j), number(1), 1)))
      touched = math.max(touched, store.reads + store.writes)
    }
    holds(touched <= 8, s"$touched pages were read or written for five additions")
  }

  private def churn(): Unit = {
    val store = new MapStore
    filled(store, 2000)
    val full = store.pages.size
    (0 until 40).foreach { round =>
      batch(store)(pile => (0 until 500).foreach { i =>
        pile.add(number(round * 500 + i), number(-1), -1)
        pile.add(number(2000 + round * 500 + i), number(1), 1)
      })
      holds(store.pages.size <= 3 * full + 3, s"${store.pages.size} pages after $round rounds, $full at first")
    }
    batch(store)(pile => (0 until 1950).foreach(i => pile.add(number(20_000 + i), number(-1), -1)))
    holds(store.pages.size <= 3, s"${store.pages.size} pages for fifty rows")
  }

  private def repeated(): Unit = {
    val store = new MapStore
    (1 to 300).foreach(_ => batch(store)(pile => (0 until 40).foreach(i => pile.add(number(i), number(1), 1))))
    holds(store.pages.size <= 2, s"${store.pages.size} pages for forty rows")
  }
}
