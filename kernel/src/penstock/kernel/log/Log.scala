package penstock.kernel.log

import java.nio.file.{Files, NoSuchFileException, Path, Paths}
import java.util.{LinkedHashMap, Map => JMap}

import scala.jdk.CollectionConverters._
import scala.util.Using

/** A log as its readers see it: stretches in order, up to the committed mark.
  *
  * One object per folder and process, shared by all queries: frame headers are read once. All methods may be called from any
  * thread; what they answer belongs to the lock, so whoever asks for more than one thing holds it (`log.synchronized`).
  */
final class Log private (val folder: Path) {
  val identity: String = Identity.of(folder)
  private val marks = new MarkFile(folder)
  private var mark: Mark = _
  private var stretches = Array.empty[Stretch]
  private var open: Scanned = _
  private var cut = 0

  /** The mark as it is now, with all frames before it taken in. */
  def refresh(): Mark = synchronized {
    var tries = 0
    while (true) {
      val found = marks.read()
      if (found eq mark) return mark
      try {
        if (found.cut != cut) forget(found.cut)
        if (mark == null || mark.first != found.first) list(found)
        open = grown(found)
        mark = found
        // What was read while a writer cut the journal may be neither the old frames nor the new ones.
        if (marks.read().cut == cut) return mark
      } catch {
        // The stretch was closed and sealed after the mark was read, or a writer is recovering: the next mark says so.
        case _: NoSuchFileException if tries < Log.Tries => tries = again(tries)
        case _: DamagedLog if tries < Log.Tries => tries = again(tries)
      }
    }
    mark
  }

  /** The first frame that is still there. */
  def earliest: Long = synchronized { if (stretches.isEmpty) refresh(); stretches.head.first }

  def topic(name: String): Topic = synchronized {
    refresh()
    open.topics.getOrElse(name, throw new LogError(
      s"""topic "$name" does not exist in the log at $folder""",
      if (open.topics.isEmpty) "The log has no topics yet." else s"The topics are ${open.topics.keys.toSeq.sorted.mkString(", ")}.",
      "Create it with create_topic."))
  }

  /** The first offset of a topic's partition that is kept. */
  def begin(topic: String, partition: Int): Long = synchronized { open.begin(topic, partition) }

  /** The frame before which only the newest record of each key of a topic is there for sure. */
  def compacted(topic: String): Long = synchronized { open.compacted(topic) }

  /** The stretches that hold frames of `[from, until)`, each with the frame after its last. */
  def in(from: Long, until: Long): Array[(Stretch, Long)] = synchronized {
    val ends = stretches.drop(1).map(_.first) :+ mark.next
    stretches.zip(ends).filter { case (stretch, end) => stretch.first < until && end > from }
  }

  /** What the frames of a stretch say. */
  def scanned(stretch: Stretch): Scanned = synchronized { if (stretch eq stretches.last) open else stretch.closed }

  /** The next offset of each partition of a topic after a closed stretch, as the one after it says; none for the open stretch. */
  def endsAfter(stretch: Stretch, topic: String): Array[Long] = synchronized {
    stretches.find(_.first > stretch.first).fold(Array.empty[Long])(_.ends(topic))
  }

  /** The frames that were committed at the end of the open stretch and cannot be read, `[from, until)`; nobody knows what they held. */
  def unread: Option[(Long, Long)] = synchronized { if (stretches.last.isTorn) Some(open.next -> mark.next) else None }

  /** The open stretch has never been sealed, and nobody needs to look. */
  def isSealed(stretch: Stretch): Boolean = synchronized { !(stretch eq stretches.last) && stretch.isSealed }

  def staged(name: String): Path = folder.resolve("staged").resolve(name)

  /** Drops all that was read: recovery has cut frames off the journal, or replaced a stretch. */
  private def forget(now: Int): Unit = {
    stretches.foreach(_.close())
    stretches = Array.empty
    mark = null
    cut = now
  }

  private def again(tries: Int): Int = {
    mark = null
    Thread.sleep(Log.Pause)
    tries + 1
  }

  private def grown(found: Mark): Scanned = {
    val last = stretches.last
    val size = Files.size(last.journal)
    if (size < found.bytes)
      throw new DamagedLog(
        s"the log at $folder is shorter than what was committed",
        s"${last.journal.getFileName} has $size bytes of ${found.bytes}.",
        "Open the log with Log.open, which reports what was lost.")
    last.upTo(found.bytes)
  }

  /** The journal is listed first: what is missing from it was sealed before, and is found in the second look. */
  private def list(found: Mark): Unit = {
    val journal = numbers("journal", ".journal")
    val firsts = (journal ++ numbers("sealed", "")).filter(_ <= found.first).toSeq.sorted
    val known = stretches.map(stretch => stretch.first -> stretch).toMap
    stretches = firsts.scanLeft(null: Stretch)((before, first) => known.getOrElse(first, new Stretch(folder, first, before))).drop(1).toArray
    if (stretches.isEmpty || stretches.last.first != found.first) throw new NoSuchFileException(s"$folder/journal/${found.first}")
  }

  private def numbers(name: String, ending: String): Set[Long] = {
    val within = folder.resolve(name)
    if (!Files.isDirectory(within)) return Set.empty
    Using.resource(Files.list(within)) { paths =>
      paths.iterator().asScala.map(_.getFileName.toString).filter(_.matches(Stretch.Number + ending))
        .flatMap(_.stripSuffix(ending).toLongOption).toSet
    }
  }
}

object Log {
  private val Kept = 16
  private val Tries = 20
  private val Pause = 5L
  private val open = new LinkedHashMap[Path, Log](16, 0.75f, true) {
    override def removeEldestEntry(eldest: JMap.Entry[Path, Log]): Boolean = size > Kept
  }

  /** The log in a folder. A folder that has been made anew, with another identity, is another log. */
  def at(path: String): Log = {
    val folder = Log.folder(path)
    val identity = Identity.of(folder)
    open.synchronized {
      val known = open.get(folder)
      if (known != null && known.identity == identity) known
      else {
        val fresh = new Log(folder)
        open.put(folder, fresh)
        fresh
      }
    }
  }

  def folder(path: String): Path = Paths.get(path.stripPrefix("file:").replaceFirst("^/{2,}", "/")).toAbsolutePath.normalize
}
