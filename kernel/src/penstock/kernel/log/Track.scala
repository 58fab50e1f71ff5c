package penstock.kernel.log

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

/** A block and the frame that holds it.
  *
  * @param byte where its columns begin in the stretch file
  */
final class Member(val frame: Long, val at: Long, val byte: Long, val block: Block) {
  def place: Long = frame << Place.IndexBits | block.index
}

/** `frame << IndexBits | index` is a record's place. */
object Place {
  val IndexBits = 24
}

/** What the frames of one stretch hold for one topic.
  *
  * State: its blocks in order, the offsets missing between them, the frames that punctuate it by scope, how its event time and punctuation
  * rise, what is told of its partitions and producers, and for those who asked how these go on.
  */
final class Track(base: Standing, first: Long, lost: Lost) {
  private val members = ArrayBuffer.empty[Member]
  private val missing = ArrayBuffer.empty[Hole]
  private val marks = mutable.HashMap.empty[String, ArrayBuffer[Long]]
  private val untils = mutable.HashMap.empty[String, Steps]
  private val tops = new Steps(base.top)
  private val history = ArrayBuffer.empty[Told]
  private val paces = mutable.HashMap.empty[(String, Option[Long], String), Paced]
  private val ends = mutable.HashMap.from(base.ends.indices.map(partition => partition -> base.ends(partition)))

  def add(header: Header, body: Long, block: Block): Unit = {
    val frame = header.frame
    val expected = ends.getOrElse(block.partition, 0L)
    // Kafka's offsets have gaps.
    if (block.base > expected && !block.inKafka) missing += hole(block.partition, expected, block.base, frame)
    members += new Member(frame, header.at, body + block.start, block)
    ends(block.partition) = block.end
    tops.raise(frame, block.top)
    history += new Brought(frame, block, header.producer.orNull)
  }

  def add(frame: Long, punctuation: Punctuation): Unit = {
    marks.getOrElseUpdate(punctuation.scope, ArrayBuffer.empty) += frame
    if (punctuation.isWhole) untils.getOrElseUpdate(punctuation.scope, steps(punctuation.scope)).raise(frame, punctuation.until)
    else history += new Said(frame, punctuation)
  }

  /** The blocks of the frames in `[from, until)`. */
  def in(from: Long, until: Long): collection.IndexedSeq[Member] = members.slice(indexOf(from), indexOf(until))

  /** What no frame has and some frame of `[from, until)` may have had.
    *
    * @param end the frame after the stretch's last
    * @param after the next offset of each partition after the stretch, where something else than its frames tells
    */
  def holes(from: Long, until: Long, end: Long, after: Array[Long]): Seq[Hole] = {
    val last = after.indices.filter(partition => after(partition) > reached(partition)).map { partition =>
      hole(partition, reached(partition), after(partition), end)
    }
    (missing ++ last).filter(_.mayLieIn(from, until)).toSeq
  }

  /** The last frame before `until` with records, or punctuation for everybody or `scope`; -1 if there is none. */
  def lastBefore(until: Long, scope: String): Long = {
    val at = indexOf(until)
    val records = if (at == 0) -1L else members(at - 1).frame
    scopes(scope).foldLeft(records)((last, each) => math.max(last, marks.get(each).fold(-1L)(lastOf(_, until))))
  }

  /** The frames in `[from, until)` that punctuate it for everybody or `scope`. */
  def punctuatedIn(from: Long, until: Long, scope: String): Seq[Long] =
    scopes(scope).flatMap(each => marks.getOrElse(each, Nil)).filter(frame => frame >= from && frame < until)

  def levels(by: String, delay: Option[Long], scope: String): Levels = {
    val event = if (by == By.Stream) delay.map(tops -> _) else Some(paced(by, delay, scope) -> 0L)
    new Levels(event, scopes(scope).map(each => untils.getOrElse(each, steps(each))))
  }

  private def paced(by: String, delay: Option[Long], scope: String): Steps =
    paces.getOrElseUpdate((by, delay, scope), new Paced(paceOf(by), delay, by, scope)).upTo(history)

  private def paceOf(by: String): Pace.Standing = if (by == By.Partition) base.partitions else base.producers

  /** How far the topic has come after all of it; `known` is what else is known of it then. */
  def standing(known: Standing): Standing = {
    val until = base.until ++ untils.map { case (scope, steps) => scope -> steps.last }
    known.copy(ends = Array.tabulate(known.topic.partitions)(reached), top = tops.last, until = until,
      partitions = paceAfter(By.Partition), producers = paceAfter(By.Producer))
  }

  private def paceAfter(by: String): Pace.Standing = {
    val pace = new Pace(paceOf(by))
    history.foreach(_.to(pace, by))
    pace.standing
  }

  private def reached(partition: Int): Long = ends.getOrElse(partition, 0L)

  private def hole(partition: Int, from: Long, until: Long, frame: Long): Hole = {
    val before = members.reverseIterator.find(_.block.partition == partition).fold(first)(_.frame + 1)
    lost.hole(partition, from, until, before, frame)
  }

  private def steps(scope: String): Steps = new Steps(base.until.getOrElse(scope, Steps.None))

  private def scopes(scope: String): Seq[String] = if (scope.isEmpty) Seq("") else Seq("", scope)

  private def lastOf(frames: ArrayBuffer[Long], until: Long): Long = {
    var at = frames.length - 1
    while (at >= 0 && frames(at) >= until) at -= 1
    if (at < 0) -1L else frames(at)
  }

  /** The index of the first block of frame `frame` or later. */
  private def indexOf(frame: Long): Int = {
    var low = 0
    var high = members.length
    while (low < high) {
      val middle = (low + high) >>> 1
      if (members(middle).frame < frame) low = middle + 1 else high = middle
    }
    low
  }
}
