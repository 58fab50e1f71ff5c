package penstock.kernel.log

import com.fasterxml.jackson.databind.JsonNode

import scala.collection.mutable

/** What one has announced, and the largest event time that it brought; `Steps.None` where there is nothing. */
final case class Reached(announced: Long, top: Long) {
  def level(delay: Option[Long]): Long =
    if (delay.isEmpty || top == Steps.None) announced else math.max(announced, top - delay.get)

  def onward(other: Reached): Reached = Reached(math.max(announced, other.announced), math.max(top, other.top))

  def isBeneath(other: Reached): Boolean = announced <= other.announced && top <= other.top
}

object Reached {
  val Nothing: Reached = Reached(Steps.None, Steps.None)

  def of(found: JsonNode): Reached = Reached(time(found.get(0)), time(found.get(1)))

  def time(found: JsonNode): Long = if (found == null || found.isNull) Steps.None else found.asLong
}

/** What stood before somebody came, went, rested or returned: those that could be the least for some delay. */
final case class Peak(least: Seq[Reached]) {
  def level(delay: Option[Long]): Long = Pace.least(least, delay)

  /** Whether the other is at least as far for every delay. */
  def isBelow(other: Peak): Boolean = other.least.forall(high => least.exists(_.isBeneath(high)))
}

/** How far those that bring the records of a topic have come, be it its partitions or its producers.
  *
  * Each has reached the largest event time that it brought and, if later, what it announced. All have reached the least of what each has; who
  * is idle does not count, until it brings something again. What all have reached never goes back: before anybody comes, goes, rests
  * or returns, what stood is kept as a peak, for every delay. `src/penstock/log/pace.py` says the same.
  *
  * State: members by name; idle ones, and peaks, by scope. A scope in which nobody ever rested has those of scope "".
  */
final class Pace(base: Pace.Standing) {
  private val members = mutable.LinkedHashMap.from(base.members)
  private var idle = base.idle
  private var peaks = base.peaks

  /** A member brought records; others than members are not looked at. */
  def bring(member: String, top: Long): Unit = goOn(member, Reached(Steps.None, top))

  def announce(member: String, until: Long): Unit = goOn(member, Reached(until, Steps.None))

  def join(member: String, until: Long): Unit = {
    remember()
    wake(member)
    members(member) = members.getOrElse(member, Reached.Nothing).onward(Reached(until, Steps.None))
  }

  def leave(member: String): Unit = {
    remember()
    wake(member)
    members.remove(member)
  }

  def rest(member: String, scope: String): Unit = if (members.contains(member)) {
    if (!idle.contains(scope)) {
      idle += scope -> Set.empty
      peaks += scope -> peaks.getOrElse(scope, peaks.getOrElse("", Nil))
    }
    remember()
    idle += scope -> (idle(scope) + member)
  }

  /** What all have reached so far, for readers who stay `delay` behind event times. */
  def level(delay: Option[Long], scope: String): Long = {
    val stood = peaks.getOrElse(scope, peaks.getOrElse("", Nil))
    stood.foldLeft(Pace.least(active(scope), delay))((level, peak) => math.max(level, peak.level(delay)))
  }

  def standing: Pace.Standing = Pace.Standing(members.toSeq, idle, peaks)

  private def goOn(member: String, reached: Reached): Unit = members.get(member).foreach { before =>
    if (idle.valuesIterator.exists(_.contains(member))) {
      remember()
      wake(member)
    }
    members(member) = before.onward(reached)
  }

  private def wake(member: String): Unit = idle = idle.map { case (scope, resting) => scope -> (resting - member) }

  private def active(scope: String): Iterable[Reached] = {
    val resting = idle.getOrElse("", Set.empty) ++ idle.getOrElse(scope, Set.empty)
    if (resting.isEmpty) members.values else members.view.filterKeys(!resting.contains(_)).values
  }

  private def remember(): Unit = (idle.keySet + "").foreach { scope =>
    val peak = Pace.lowest(active(scope))
    val stood = peaks.getOrElse(scope, Nil)
    if (peak.least.headOption.exists(_ != Reached.Nothing) && !stood.exists(peak.isBelow))
      peaks += scope -> (stood.filterNot(_.isBelow(peak)) :+ peak)
  }
}

object Pace {
  final case class Standing(members: Seq[(String, Reached)], idle: Map[String, Set[String]], peaks: Map[String, Seq[Peak]])

  def begun(members: Seq[(String, Reached)]): Standing = Standing(members, Map.empty, Map.empty)

  /** What a prelude says; `members` stand elsewhere in it. */
  def of(members: Seq[(String, Reached)], found: JsonNode): Standing = {
    val idle = Json.fields(found.get("idle")).map { case (scope, names) => scope -> Json.strings(names).toSet }.toMap
    val peaks = Json.fields(found.get("peaks")).map { case (scope, each) =>
      scope -> Json.items(each).map(peak => Peak(Json.items(peak).map(Reached.of).toSeq)).toSeq
    }.toMap
    Standing(members, idle, peaks)
  }

  def least(reached: Iterable[Reached], delay: Option[Long]): Long =
    reached.iterator.map(_.level(delay)).reduceOption(_ min _).getOrElse(Steps.None)

  /** Those beneath which no other is. */
  private def lowest(reached: Iterable[Reached]): Peak = {
    val found = reached.toSeq.sortBy(each => (each.announced, each.top)).foldLeft(List.empty[Reached]) { (kept, each) =>
      if (kept.isEmpty || each.top < kept.head.top) each :: kept else kept
    }
    Peak(found.reverse)
  }
}
