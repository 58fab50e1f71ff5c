package penstock.kernel.engine

import java.util.{ArrayDeque, LinkedHashMap, Map => JavaMap}
import org.apache.spark.TaskContext
import org.apache.spark.util.TaskCompletionListener

/** What is costly to make, as compiled expressions are, and can be used by one task at a time: what a task has used is kept for tasks of later batches.
  *
  * By name; of the names that were not asked for the longest, some are forgotten.
  */
object Kept {
  private val Most = 1000
  private val idle = new LinkedHashMap[String, ArrayDeque[AnyRef]](16, 0.75f, true) {
    override def removeEldestEntry(eldest: JavaMap.Entry[String, ArrayDeque[AnyRef]]): Boolean = size > Most
  }

  /** One that nobody uses, or a new one; until the end of the task. A task that fails may have left it in any state. */
  def of[A <: AnyRef](name: String)(make: => A): A = {
    val found = idle.synchronized(Option(idle.get(name)).flatMap(each => Option(each.poll())))
    val made = found.fold(make)(_.asInstanceOf[A])
    val task = TaskContext.get()
    if (task != null) task.addTaskCompletionListener(new TaskCompletionListener {
      override def onTaskCompletion(context: TaskContext): Unit = if (!context.isFailed() && !context.isInterrupted()) give(name, made)
    })
    made
  }

  private def give(name: String, made: AnyRef): Unit = idle.synchronized {
    idle.computeIfAbsent(name, _ => new ArrayDeque[AnyRef]()).push(made)
  }
}
