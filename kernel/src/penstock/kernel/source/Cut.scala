package penstock.kernel.source

import penstock.kernel.log.{Log, LogError, Mark, NewData, Reader}

import scala.collection.mutable

/** Where the batches of one query end: the same frame for all its sources.
  *
  * In: the sources' questions for their latest offset. Spark asks each in turn, so one that asks again begins a new round.
  * State: the sources of the query, the mark of the round, and the ends given in it by start.
  * Out: within a round, the same end for the same start; equal to the start if there is no new data for any source.
  */
final class Cut(log: Log) {
  private val sources = mutable.LinkedHashMap.empty[String, ReadOptions]
  private val answered = mutable.HashSet.empty[String]
  private val ends = mutable.HashMap.empty[Long, Long]
  private var mark: Mark = _
  private var asked = 0L
  private var cap: Option[Long] = None
  private var first: Option[Long] = None

  def join(source: String, options: ReadOptions): Unit = synchronized(sources(source) = options)

  def holds(source: String): Boolean = synchronized(sources.contains(source))

  /** Where a new query starts that does not say so: at the first frame that is still there, the same for all sources. */
  def earliest: Long = synchronized {
    if (first.isEmpty) first = Some(log.earliest)
    first.get
  }

  /** From now on the query reads no further than the log reaches now. */
  def capNow(): Unit = synchronized { if (cap.isEmpty) cap = Some(log.refresh().next) }

  /** Where the batch that begins at `start` ends; not `limited` where Spark means to ignore the sources' limits. */
  def end(source: String, start: Long, limited: Boolean): Long = synchronized {
    if (mark == null || !answered.add(source)) begin(source)
    asked = start
    ends.getOrElseUpdate(start, found(start, limited))
  }

  /** Where it would end without limits: how far the sources that asked are behind. */
  def latest: Long = synchronized { if (mark == null) asked else NewData.end(log, readers, asked, mark.next) }

  private def begin(source: String): Unit = {
    val now = log.refresh()
    // The same mark gives the same ends: nothing has to be looked at.
    if (now ne mark) ends.clear()
    mark = now
    answered.clear()
    answered += source
  }

  private def found(start: Long, limited: Boolean): Long = {
    Cut.check(log, start, mark)
    val before = math.min(mark.next, cap.getOrElse(Long.MaxValue))
    val limit = if (limited) sources.values.flatMap(_.maxRecords).minOption else None
    val most = sources.values.flatMap(_.maxFrames).minOption
    if (limit.isEmpty && most.isEmpty) NewData.end(log, readers, start, before)
    else NewData.end(log, readers, start, before, limit.getOrElse(Long.MaxValue), most.getOrElse(Long.MaxValue))
  }

  private def readers: Seq[Reader] = sources.values.map(options => Reader(options.topic, options.scope)).toSeq
}

object Cut {
  private val cuts = mutable.HashMap.empty[(String, String, String), Cut]

  /** The cut of the query whose checkpoint has the folder `source` for one of its sources, joined by that source. */
  def joined(source: String, options: ReadOptions, log: Log): Cut = cuts.synchronized {
    val key = (query(source), log.folder.toString, log.identity)
    // A source that is there already belongs to an earlier run of the query that did not end properly.
    val cut = cuts.get(key).filterNot(_.holds(source)).getOrElse(new Cut(log))
    cuts(key) = cut
    cut.join(source, options)
    cut
  }

  def forget(cut: Cut): Unit = cuts.synchronized(cuts.filterInPlace((_, each) => each ne cut))

  /** Refuses a frame that the log does not have, or has no more. */
  def check(log: Log, frame: Long, mark: Mark): Unit = {
    if (frame > mark.next)
      throw new LogError(
        s"frame $frame is beyond the end of the log",
        s"The log at ${log.folder} ends before frame ${mark.next}: it is older than what was read from it.",
        "Restore the newer log, or start with a new checkpoint.")
    if (frame < log.earliest)
      throw new LogError(
        s"frame $frame is no longer in the log",
        s"The log at ${log.folder} begins with frame ${log.earliest}: what came before has been removed.",
        "Keep records longer, or start with a new checkpoint.")
  }

  /** `<checkpoint>/sources/<n>`  =>  `<checkpoint>` */
  private def query(source: String): String = source.stripSuffix("/").split('/').dropRight(2).mkString("/")
}
