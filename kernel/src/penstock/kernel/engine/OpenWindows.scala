package penstock.kernel.engine

import java.util.{HashMap => JavaMap, HashSet => JavaSet}
import org.apache.spark.util.AccumulatorV2

/** Which windows of each operator are open, as far as the slots that worked in a batch tell; for people to see. */
final class OpenWindows extends AccumulatorV2[(Int, Iterable[java.lang.Long]), JavaMap[Integer, JavaSet[java.lang.Long]]] {
  private val open = new JavaMap[Integer, JavaSet[java.lang.Long]]()

  override def isZero: Boolean = open.isEmpty
  override def copy(): OpenWindows = {
    val made = new OpenWindows
    made.merge(this)
    made
  }
  override def reset(): Unit = open.clear()
  override def add(of: (Int, Iterable[java.lang.Long])): Unit = {
    val ends = open.computeIfAbsent(of._1, _ => new JavaSet())
    of._2.foreach(ends.add)
  }
  override def merge(other: AccumulatorV2[(Int, Iterable[java.lang.Long]), JavaMap[Integer, JavaSet[java.lang.Long]]]): Unit =
    other.value.forEach((operator, ends) => open.computeIfAbsent(operator, _ => new JavaSet()).addAll(ends))
  override def value: JavaMap[Integer, JavaSet[java.lang.Long]] = open

  /** How many windows of each operator are open; the next batch begins anew. */
  def take(): JavaMap[Integer, Integer] = {
    val counts = new JavaMap[Integer, Integer]()
    open.forEach((operator, ends) => counts.put(operator, ends.size))
    reset()
    counts
  }
}
