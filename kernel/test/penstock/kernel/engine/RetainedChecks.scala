package penstock.kernel.engine

import java.util.Random

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.{BooleanType, IntegerType, LongType, StringType}
import org.apache.spark.unsafe.types.UTF8String
import penstock.kernel.Checks
import penstock.kernel.Checks.equal
import penstock.kernel.log.Place
import scala.collection.mutable

/** Joins that are corrected for a limited time against a look through the whole log. A left row is a number and when it is over, a right one a number. */
object RetainedChecks {
  private val Left = new Columns(Seq(LongType, LongType))
  private val Right = new Columns(Seq(LongType))
  private val Both = new Columns(Seq(LongType, LongType, LongType))
  private val Marked = new Columns(Seq(LongType, LongType, BooleanType))
  private val Out = Target(100, 0, 100)
  private val Alike = EqualTo(Remainder(Both(0), Literal(2L)), Remainder(Both(2), Literal(2L)))

  def run(checks: Checks): Unit = {
    for (kind <- Seq("inner", "left", "semi", "anti", "exists"); condition <- Seq(None, Some(Alike))) {
      checks.seeded(s"$kind join, corrected for a limited time${condition.fold("")(_ => ", under a condition")}", 5)(joins(_, kind, condition))
    }
    checks.seeded("two sides that are both corrected for a limited time", 5)(streams)
    checks.seeded("records that come too late to correct anything", 5)(missed)
    checks.check("every record of a table says what it changes, and goes on with that")(steps())
  }

  /** One record: the place, the watermark before it, which side, and what it does. */
  private case class Step(place: Long, watermark: Long, port: Int, values: Seq[Any], weight: Long)

  /** A log that grows: time goes on from frame to frame. */
  private final class Story(random: Random, rights: Int => Seq[Any]) {
    val log = mutable.ArrayBuffer.empty[Step]
    private var frame = 0L
    private var now = Windows.None
    private var told = Windows.None

    /** The records of some frames, and the steps that the watermark took; `end` moves it beyond everything. */
    def batch(end: Boolean = false): (Seq[Step], Option[Moved]) = {
      val fresh = mutable.ArrayBuffer.empty[Step]
      val (frames, values) = (mutable.ArrayBuffer.empty[Long], mutable.ArrayBuffer.empty[Long])
      (0 until random.nextInt(4)).foreach { _ =>
        frame += 1
        if (random.nextInt(2) == 0) rise(math.max(now, 0L) + random.nextInt(6), frames, values)
        (0 until random.nextInt(4)).foreach(i => fresh += step((frame << Place.IndexBits) + i, log.toSeq ++ fresh))
      }
      frame += 1
      if (end) rise(1000L, frames, values)
      log ++= fresh
      val moved = Option.when(now != told)(Moved(now, Watermarks.bytes(frames.toArray, values.toArray)))
      told = now
      (fresh.toSeq, moved)
    }

    private def rise(to: Long, frames: mutable.ArrayBuffer[Long], values: mutable.ArrayBuffer[Long]): Unit = if (to > now) {
      now = to
      frames += frame
      values += now
    }

    private def step(place: Long, before: Seq[Step]): Step = {
      val there = before.filter(_.port == 1).groupMapReduce(_.values)(_.weight)(_ + _).filter(_._2 > 0).keys.toSeq.sortBy(_.toString)
      if (random.nextBoolean()) Step(place, now, 0, Seq(random.nextInt(4).toLong, math.max(now, 0L) + random.nextInt(16) - 5), 1)
      else if (there.nonEmpty && random.nextInt(3) == 0 && there.head.length == 1) Step(place, now, 1, there(random.nextInt(there.length)), -1)
      else Step(place, now, 1, rights(math.max(now, 0L).toInt), 1)
    }
  }

  private def envelope(step: Step, columns: Columns): Array[Byte] =
    new Route(Edge(Target(1, step.port, 1), None, Nil, columns.all)).envelope(columns.row(step.values), step.weight, 0, step.place)

  private def tick(clock: Int, moved: Moved): Array[Byte] = Envelope.tick(Target(1, clock, 1), 0, moved.watermark, moved.steps)

  private def counts(c: Step, place: Long, over: Long): Boolean = c.place < place || c.watermark < over

  private def joins(random: Random, kind: String, condition: Option[Expression]): Unit = {
    val columns = kind match { case "exists" => Marked; case "semi" | "anti" => Left; case _ => Both }
    val operator = RetainedJoin(1, 0, JoinKind.all(kind), (2, 1), condition, Seq(0, RetainedJoin.NoClock), 1, Seq(Edge(Out, None, Nil, columns.all)))
    val levels = new Levels(Seq(Seq(Chain(1, Seq(operator)))), random, slots = 1)
    val story = new Story(random, _ => Seq(random.nextInt(4).toLong))
    val found = new Tallies
    (1 to 25).foreach { batch =>
      val (steps, moved) = story.batch()
      found.take(levels.batch(steps.map(step => envelope(step, if (step.port == 0) Left else Right)) ++ moved.map(tick(0, _))))
      found.same(Out.operator, columns, wanted(story.log.toSeq, kind, condition.isDefined), s"batch $batch")
      if (random.nextInt(4) == 0) levels.restart()
    }
    val (steps, moved) = story.batch(end = true)
    val rights = story.log.toSeq.filter(_.port == 1).groupMapReduce(_.values)(_.weight)(_ + _).filter(_._2 != 0)
    val gone = rights.map { case (values, times) => Step(Long.MaxValue, 1000, 1, values, -times) }
    levels.batch(steps.map(step => envelope(step, if (step.port == 0) Left else Right)) ++ moved.map(tick(0, _)))
    levels.batch(gone.map(envelope(_, Right)))
    equal(levels.pages, 0, "pages when all is over and the other side is empty")
  }

  /** The rights that hold for each left row, of all that the log has. */
  private def wanted(log: Seq[Step], kind: String, conditional: Boolean): Seq[Seq[Any]] = log.filter(_.port == 0).flatMap { l =>
    val Seq(number: Long, over: Long) = l.values: @unchecked
    val held = log.filter(c => c.port == 1 && counts(c, l.place, over)).groupMapReduce(_.values)(_.weight)(_ + _).filter(_._2 > 0)
    val partners = held.toSeq.filter { case (values, _) => !conditional || values.head.asInstanceOf[Long] % 2 == number % 2 }
    kind match {
      case "semi" => if (partners.nonEmpty) Seq(l.values) else Nil
      case "anti" => if (partners.isEmpty) Seq(l.values) else Nil
      case "exists" => Seq(l.values :+ partners.nonEmpty)
      case _ =>
        val pairs = partners.flatMap { case (values, times) => Seq.fill(times.toInt)(l.values ++ values) }
        if (pairs.isEmpty && kind == "left") Seq(l.values :+ null) else pairs
    }
  }

  private def streams(random: Random): Unit = {
    val columns = new Columns(Seq.fill(4)(LongType))
    val operator = RetainedJoin(1, 0, JoinKind.Inner, (2, 2), None, Seq(0, 1), 2, Seq(Edge(Out, None, Nil, columns.all)))
    val levels = new Levels(Seq(Seq(Chain(1, Seq(operator)))), random, slots = 1)
    val story = new Story(random, now => Seq(random.nextInt(4).toLong, now + random.nextInt(16) - 5L))
    val found = new Tallies
    (1 to 25).foreach { batch =>
      val (steps, moved) = story.batch()
      found.take(levels.batch(steps.map(envelope(_, Left)) ++ moved.toSeq.flatMap(each => Seq(tick(0, each), tick(1, each)))))
      val pairs = for (l <- story.log.toSeq if l.port == 0; r <- story.log if r.port == 1) yield (l, r)
      val met = pairs.filter { case (l, r) => counts(r, l.place, l.values(1).asInstanceOf[Long]) && counts(l, r.place, r.values(1).asInstanceOf[Long]) }
      found.same(Out.operator, columns, met.map { case (l, r) => l.values ++ r.values }, s"batch $batch")
      if (random.nextInt(4) == 0) levels.restart()
    }
    val (steps, moved) = story.batch(end = true)
    levels.batch(steps.map(envelope(_, Left)) ++ moved.toSeq.flatMap(each => Seq(tick(0, each), tick(1, each))))
    equal(levels.pages, 0, "pages when all is over")
  }

  private def missed(random: Random): Unit = {
    val (time, record) = (new Columns(Seq(LongType)), new Columns(TableSteps.Record))
    val letter = new Columns(TableSteps.Record ++ Seq(LongType, LongType))
    val levels = new Levels(Seq(Seq(Chain(1, Seq(Missed(1, 0, Seq(Edge(Out, None, Nil, letter.all))))))), random, slots = 1)
    val story = new Story(random, _ => Seq(random.nextInt(4).toLong))
    val found = new Tallies
    def values(c: Step): Seq[Any] = Seq(0, c.place, UTF8String.fromString(c.values.mkString))
    def told(c: Step): Array[Byte] = if (c.port == 0) envelope(c.copy(values = c.values.drop(1)), time) else envelope(c.copy(values = values(c)), record)
    (1 to 25).foreach { batch =>
      val (steps, moved) = story.batch()
      // A record that replaces a row takes it away at the same place.
      val replaced = steps.filter(c => c.port == 1 && c.weight > 0 && c.values.head == 0L).map(_.copy(weight = -1))
      found.take(levels.batch((steps ++ replaced).map(told) ++ moved.map(tick(0, _))))
      val late = story.log.toSeq.filter(_.port == 1).flatMap { c =>
        val least = story.log.filter(l => l.port == 0 && l.place < c.place).map(_.values(1).asInstanceOf[Long]).minOption
        least.filter(_ <= c.watermark).map(over => values(c) ++ Seq(c.watermark, over))
      }
      found.same(Out.operator, letter, late, s"batch $batch")
      if (random.nextInt(4) == 0) levels.restart()
    }
  }

  private def steps(): Unit = {
    val (row, whole) = (new Columns(Seq(LongType, LongType)), new Columns(Seq(LongType, LongType) ++ TableSteps.Record))
    def upsert(edges: Seq[Edge]): Upsert = Upsert(1, 0, 2, edges, Some(TableSteps(Some(row.types))))
    val levels = new Levels(Seq(Seq(Chain(1, Seq(upsert(Seq(Edge(Out, None, Nil, whole.all))))))), new Random(1), slots = 1)
    def record(value: Long, weight: Long, place: Long): Array[Byte] =
      envelope(Step(place, 0, 0, Seq(7L, value, 0, place, UTF8String.fromString(s"r$place")), weight), whole)
    def changes(records: Array[Byte]*): Seq[(Long, Long, Long, String)] = levels.batch(records).map { sent =>
      val row = Envelope.read(sent, new UnsafeRow(5))
      (Envelope.place(sent), Envelope.weight(sent), row.getLong(1), row.getUTF8String(4).toString)
    }.sortBy(each => (each._1, each._2))
    val first = changes(record(1, 1, 1), record(2, 1, 2), record(2, 1, 3), record(0, -1, 4), record(3, 1, 5))
    equal(first, Seq((1L, 1L, 1L, "r1"), (2L, -1L, 1L, "r2"), (2L, 1L, 2L, "r2"), (4L, -1L, 2L, "r4"), (5L, 1L, 3L, "r5")), "changes")
    levels.restart()
    equal(changes(record(3, 1, 6), record(4, 1, 7)), Seq((7L, -1L, 3L, "r7"), (7L, 1L, 4L, "r7")), "changes after a restart")
  }
}
