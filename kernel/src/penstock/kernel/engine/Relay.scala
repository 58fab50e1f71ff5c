package penstock.kernel.engine

import java.util.concurrent.{ConcurrentHashMap, TimeUnit}
import java.util.concurrent.locks.ReentrantLock
import org.apache.spark.TaskContext
import org.apache.spark.util.{TaskCompletionListener, TaskFailureListener}

/** What the tasks of one batch hand to each other, while all of them run in one process.
  *
  * A task sends rows to levels that it has not come to. All tasks `meet` before each level: what was sent to it is whole then, and only its receiver looks at it.
  * A task that fails, or is stopped, ends the others.
  *
  * @param most so many bytes of what is on its way stay in memory
  * @param patience milliseconds that a task waits for Spark to end it, when another has failed
  */
final class Relay(tasks: Int, levels: Seq[Int], folder: String, most: Long, patience: Long = Relay.Patience) {
  private val room = new Room(most)
  private val level = levels.zipWithIndex.toMap
  /** By level, receiver and sender; each is made by its sender. */
  private val inflows = Array.ofDim[Inflow](levels.size, tasks, tasks)
  private var arrived = 0
  private var round = 0
  private var left = 0
  private var failure: Throwable = _

  def send(from: Int, to: Int, at: Int, group: Long, envelope: Array[Byte]): Unit = {
    val senders = inflows(level(at))(to)
    if (senders(from) == null) senders(from) = new Inflow(folder, room)
    senders(from).add(group, envelope)
  }

  /** The groups that somebody has sent rows to. */
  def groups(me: Int, at: Int): Iterator[Long] = sent(me, at).flatMap(_.groups).distinct.sorted.iterator

  /** The rows for one of them, once. */
  def rows(me: Int, at: Int, group: Long): Iterator[Array[Byte]] = sent(me, at).iterator.flatMap(_.take(group))

  private def sent(me: Int, at: Int): Seq[Inflow] = inflows(level(at))(me).toSeq.filter(_ != null)

  /** Returns when all tasks have come so far. */
  def meet(): Unit = synchronized {
    arrived += 1
    if (arrived == tasks) {
      arrived = 0
      round += 1
      notifyAll()
    } else awaitRound(round + 1)
  }

  private def awaitRound(next: Int): Unit = {
    while (round < next && failure == null) pause()
    // Whoever failed tells Spark why, which ends all others: the first that speaks is believed.
    val until = System.nanoTime + TimeUnit.MILLISECONDS.toNanos(patience)
    while (round < next && System.nanoTime < until) pause()
    if (round < next) throw failure
  }

  private def pause(): Unit = {
    wait(Relay.Look)
    Option(TaskContext.get()).foreach(task => if (task.isInterrupted()) throw new InterruptedException("the batch is stopped"))
  }

  /** A task has failed: nobody waits for it any more. */
  def fail(cause: Throwable): Unit = synchronized {
    if (failure == null) failure = cause
    notifyAll()
  }

  /** A task is done; whether all are, so that nothing is kept any more. Where a task has failed, what was put aside goes when Java collects its garbage: others may
    * still be reading.
    */
  def leave(): Boolean = synchronized {
    left += 1
    if (left == tasks) inflows.foreach(_.foreach(_.foreach(inflow => if (inflow != null) inflow.close())))
    left == tasks
  }
}

object Relay {
  private val Patience = 10000L
  private val Look = 100L
  /** A quarter of Java's memory, and no more than an array can hold. */
  private val Most = math.min(1L << 30, Runtime.getRuntime.maxMemory / 4)
  private val open = new ConcurrentHashMap[String, Relay]()
  private val turn = new ReentrantLock(true)

  /** That of the batch which the current task works on. */
  def of(name: String, tasks: Int, levels: Seq[Int], folder: String): Relay = {
    val task = TaskContext.get()
    val batch = s"$name ${task.stageId()} ${task.stageAttemptNumber()}"
    val relay = open.computeIfAbsent(batch, _ => new Relay(tasks, levels, folder, Most))
    task.addTaskFailureListener(new TaskFailureListener {
      override def onTaskFailure(context: TaskContext, error: Throwable): Unit = relay.fail(error)
    })
    task.addTaskCompletionListener(new TaskCompletionListener {
      override def onTaskCompletion(context: TaskContext): Unit = if (relay.leave() || context.isFailed() || context.isInterrupted()) open.remove(batch)
    })
    relay
  }

  /** Runs a batch while no other is run in this process: of two batches that had half of the cores each, both would wait for ever. */
  def alone[A](batch: => A): A = {
    turn.lockInterruptibly()
    try batch finally turn.unlock()
  }
}
