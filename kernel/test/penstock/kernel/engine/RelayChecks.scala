package penstock.kernel.engine

import java.nio.file.Files
import java.util.Random
import java.util.concurrent.{Callable, ExecutionException, Executors}
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.types.LongType
import penstock.kernel.Checks
import penstock.kernel.Checks.{equal, holds}
import scala.collection.mutable.ArrayBuffer

/** What tasks hand to each other arrives once, where and when it should. */
object RelayChecks {
  private val folder = Files.createTempDirectory("relay").toString

  def run(checks: Checks): Unit = {
    checks.seeded("an inflow gives back what it got, from memory and from its file", 6)(inflow)
    checks.check("an inflow leaves no file behind")(nothingLeft())
    checks.seeded("tasks that send to each other get everything once, whole at its level", 6)(exchange)
    checks.check("a task that waits for one that failed fails with its cause")(failure())
    checks.check("a group is with the task that Spark brings it to")(tasks())
    checks.check("every task is woken by one group, after all others")(waking())
  }

  private def envelope(random: Random): Array[Byte] = {
    val bytes = new Array[Byte](48 + random.nextInt(200))
    random.nextBytes(bytes)
    bytes
  }

  private def inflow(random: Random): Unit = for (room <- Seq(0L, 5000L, 1L << 30)) {
    val inflow = new Inflow(folder, new Room(room))
    val sent = Seq.fill(500)((random.nextInt(7).toLong << 32, envelope(random)))
    sent.foreach { case (group, bytes) => inflow.add(group, bytes) }
    equal(inflow.groups.toSet, sent.map(_._1).toSet, "groups")
    for ((group, wanted) <- sent.groupMap(_._1)(_._2.toSeq)) {
      equal(inflow.take(group).map(_.toSeq).toSeq.sortBy(_.toString), wanted.sortBy(_.toString), s"rows of group $group with room for $room")
      equal(inflow.take(group).size, 0, "rows that were taken")
    }
    inflow.close()
  }

  private def nothingLeft(): Unit = {
    val inflow = new Inflow(folder, new Room(0))
    (0 until 1000).foreach(_ => inflow.add(1, envelope(new Random(1))))
    equal(Files.list(java.nio.file.Paths.get(folder)).count(), 0L, "files while an inflow is in use")
    inflow.close()
  }

  /** Each task sends to levels below, also when it is on a level; what it got is compared with what all have sent. */
  private def exchange(random: Random): Unit = {
    val (tasks, levels) = (3, Seq(4, 2, 1))
    val relay = new Relay(tasks, levels, folder, most = random.nextInt(20000))
    val plans = Seq.fill(tasks)(new Random(random.nextLong()))
    val found = together(tasks) { me =>
      val (sent, got) = (ArrayBuffer.empty[(Int, Int, Seq[Byte])], ArrayBuffer.empty[(Int, Int, Seq[Byte])])
      def send(below: Int): Unit = for (at <- levels if at < below; _ <- 0 until 40) {
        val (to, bytes) = (plans(me).nextInt(tasks), envelope(plans(me)))
        relay.send(me, to, at, plans(me).nextInt(5), bytes)
        sent += ((to, at, bytes.toSeq))
      }
      send(Int.MaxValue)
      for (at <- levels) {
        relay.meet()
        for (group <- relay.groups(me, at); bytes <- relay.rows(me, at, group)) got += ((me, at, bytes.toSeq))
        send(at)
      }
      relay.leave()
      (sent.toSeq, got.toSeq)
    }
    equal(found.flatMap(_._2).groupBy(identity), found.flatMap(_._1).groupBy(identity), "what came")
  }

  private def failure(): Unit = {
    val relay = new Relay(2, Seq(1), folder, most = 0, patience = 1)
    try {
      together(2) { me => if (me == 0) relay.fail(new IllegalStateException("the reason")) else relay.meet() }
      throw new AssertionError("the other task went on")
    } catch { case failed: ExecutionException => equal(failed.getCause.getMessage, "the reason", "what the other task says") }
  }

  private def together[A](tasks: Int)(task: Int => A): Seq[A] = {
    val pool = Executors.newFixedThreadPool(tasks)
    try {
      val begun = (0 until tasks).map(me => pool.submit(new Callable[A] { override def call(): A = task(me) }))
      begun.map(_.get())
    } finally pool.shutdownNow()
  }

  private def tasks(): Unit = for (count <- Seq(1, 2, 3, 16)) {
    val spark = UnsafeProjection.create(Seq(HashPartitioning(Seq(BoundReference(0, LongType, nullable = false)), count).partitionIdExpression))
    val random = new Random(count)
    for (group <- Seq(0L, -1L, Long.MinValue, Long.MaxValue) ++ Seq.fill(200)(random.nextLong()))
      equal(Cascade.task(group, count), spark(InternalRow(group)).getInt(0), s"the task of group $group")
  }

  private def waking(): Unit = for (count <- Seq(1, 2, 5, 16, 64); slots <- Seq(4, 64)) {
    val groups = Cascade.waking(count, slots)
    equal(groups.map(Cascade.task(_, count)), 0 until count, "whom the groups wake")
    holds(groups.forall(_ > (1000000L << 32)), "they come after the groups of chains")
    holds(groups.forall(group => (group & 0xffffffffL) < slots), "their slots are slots")
  }
}
