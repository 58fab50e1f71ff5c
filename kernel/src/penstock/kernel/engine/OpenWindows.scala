package penstock.kernel.engine

import java.util.{ArrayList, Comparator, HashMap => JavaMap}
import org.apache.spark.util.AccumulatorV2

/** What is open in a slot of an operator. */
sealed trait Open

/** The ends of windows: from one to another, each `step` after the one before; these two for each span, in order. Slots may have the same windows. */
final case class Spans(step: Long, ends: Array[Long]) extends Open

/** So many sessions, which no other slot has. */
final case class OpenSessions(count: Long) extends Open

/** What an operator has open in a slot of its chain. */
final case class OpenInSlot(operator: Int, group: Long, open: Open)

/** Which windows and sessions of each operator are open, as far as the slots that have worked since the run began tell; for people to see.
  *
  * A slot that did not work in a batch has the windows that it had. When the watermark moves, all slots work.
  */
final class OpenWindows extends AccumulatorV2[OpenInSlot, JavaMap[Int, JavaMap[Long, Open]]] {
  private val open = new JavaMap[Int, JavaMap[Long, Open]]()
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
  override def add(told: OpenInSlot): Unit = synchronized {
    open.computeIfAbsent(told.operator, _ => new JavaMap()).put(told.group, told.open)
    counts.remove(told.operator)
  }
  override def merge(other: AccumulatorV2[OpenInSlot, JavaMap[Int, JavaMap[Long, Open]]]): Unit = other.value.forEach { (operator, slots) =>
    slots.forEach((group, some) => add(OpenInSlot(operator, group, some)))
  }
  override def value: JavaMap[Int, JavaMap[Long, Open]] = open

  /** How many windows and sessions of each operator are open, in all its slots together. */
  def counted(): JavaMap[Integer, Integer] = synchronized {
    open.forEach((operator, slots) => counts.computeIfAbsent(operator, _ => OpenWindows.count(slots.values)))
    new JavaMap(counts)
  }
}

object OpenWindows {
  /** How many sessions there are, and how many ends of windows: those that several slots have are one. */
  private def count(slots: java.util.Collection[Open]): Int = {
    val spans = new ArrayList[(Long, Long, Long)]()
    var (found, last) = (0L, Windows.None)
    slots.forEach {
      case Spans(step, ends) => ends.grouped(2).foreach { case Array(from, until) => spans.add((from, until, step)) }
      case OpenSessions(count) => found += count
    }
    spans.sort(Comparator.comparingLong[(Long, Long, Long)](_._1))
    spans.forEach { case (from, until, step) =>
      if (from > last) found += (until - from) / step + 1 else if (until > last) found += (until - last) / step
      last = math.max(last, until)
    }
    found.toInt
  }
}
