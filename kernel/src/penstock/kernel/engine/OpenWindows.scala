package penstock.kernel.engine

import java.util.{ArrayList, Comparator, HashMap => JavaMap}
import org.apache.spark.util.AccumulatorV2

/** The ends of windows: from one to another, each `step` after the one before; these two for each span, in order. */
final case class Spans(step: Long, ends: Array[Long])

/** The windows of an operator that are open in a slot of its chain. */
final case class OpenSpans(operator: Int, group: Long, open: Spans)

/** Which windows of each operator are open, as far as the slots that have worked since the run began tell; for people to see.
  *
  * A slot that did not work in a batch has the windows that it had. When the watermark moves, all slots work.
  */
final class OpenWindows extends AccumulatorV2[OpenSpans, JavaMap[Int, JavaMap[Long, Spans]]] {
  private val open = new JavaMap[Int, JavaMap[Long, Spans]]()
  private val counts = new JavaMap[Integer, Integer]()

  override def isZero: Boolean = open.isEmpty
  override def copy(): OpenWindows = {
    val made = new OpenWindows
    made.merge(this)
    made
  }
  /** Tasks begin with nothing. */
  override def copyAndReset(): OpenWindows = new OpenWindows
  override def reset(): Unit = synchronized {
    open.clear()
    counts.clear()
  }
  override def add(told: OpenSpans): Unit = synchronized {
    open.computeIfAbsent(told.operator, _ => new JavaMap()).put(told.group, told.open)
    counts.remove(told.operator)
  }
  override def merge(other: AccumulatorV2[OpenSpans, JavaMap[Int, JavaMap[Long, Spans]]]): Unit = other.value.forEach { (operator, slots) =>
    slots.forEach((group, spans) => add(OpenSpans(operator, group, spans)))
  }
  override def value: JavaMap[Int, JavaMap[Long, Spans]] = open

  /** How many windows of each operator are open, in all its slots together. */
  def counted(): JavaMap[Integer, Integer] = synchronized {
    open.forEach((operator, slots) => counts.computeIfAbsent(operator, _ => OpenWindows.count(slots.values)))
    new JavaMap(counts)
  }
}

object OpenWindows {
  /** How many ends there are: those that several slots have are one. */
  private def count(slots: java.util.Collection[Spans]): Int = {
    val spans = new ArrayList[(Long, Long, Long)]()
    slots.forEach(slot => slot.ends.grouped(2).foreach { case Array(from, until) => spans.add((from, until, slot.step)) })
    spans.sort(Comparator.comparingLong[(Long, Long, Long)](_._1))
    var (found, last) = (0L, Windows.None)
    spans.forEach { case (from, until, step) =>
      if (from > last) found += (until - from) / step + 1 else if (until > last) found += (until - last) / step
      last = math.max(last, until)
    }
    found.toInt
  }
}
