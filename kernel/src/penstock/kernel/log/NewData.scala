package penstock.kernel.log

/** Who reads what: a topic, and the scope whose punctuation counts besides the one for everybody. */
final case class Reader(topic: String, scope: String)

/** Where the next batch ends. Only frames with records or punctuation for the readers are new data; a frame is never split. */
object NewData {

  /** Frames looked at together: a batch far behind the end must not look at all that follow it. */
  private val Window = 256L

  /** The frame after the last one in `[start, before)` that holds anything for the readers; `start` if none does. */
  def end(log: Log, readers: Seq[Reader], start: Long, before: Long): Long = log.synchronized {
    log.in(start, before).reverseIterator.map { case (stretch, _) =>
      val scanned = log.scanned(stretch)
      readers.map(reader => scanned.trackOf(reader.topic).lastBefore(before, reader.scope)).foldLeft(-1L)(math.max)
    }.find(_ >= start).fold(start)(_ + 1)
  }

  /** The same, but with at most `limit` records over all topics read, or one frame if that alone has more, from at most `most` frames. */
  def end(log: Log, readers: Seq[Reader], start: Long, before: Long, limit: Long, most: Long = Long.MaxValue): Long = log.synchronized {
    var sum = 0L
    var seen = 0L
    var end = start
    log.in(start, before).foreach { case (stretch, after) =>
      var from = math.max(start, stretch.first)
      while (from < math.min(after, before)) {
        val until = math.min(from + Window, before)
        frames(log.scanned(stretch), readers, from, until).foreach { case (frame, count) =>
          if (end > start && (sum + count > limit || seen == most)) return end
          sum += count
          seen += 1
          end = frame + 1
        }
        from = until
      }
    }
    end
  }

  /** The frames with new data, ascending, each with its number of records. */
  private def frames(scanned: Scanned, readers: Seq[Reader], start: Long, before: Long): Seq[(Long, Long)] = {
    val topics = readers.map(_.topic).distinct
    val counts = topics.flatMap(scanned.trackOf(_).in(start, before).map(member => member.frame -> member.block.count.toLong))
    val marks = readers.flatMap(reader => scanned.trackOf(reader.topic).punctuatedIn(start, before, reader.scope).map(_ -> 0L))
    (counts ++ marks).groupMapReduce(_._1)(_._2)(_ + _).toSeq.sortBy(_._1)
  }
}
