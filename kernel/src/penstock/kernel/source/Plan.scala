package penstock.kernel.source

import penstock.kernel.log._

import scala.collection.mutable

/** What a read that ends at frame `until` was promised when it began: the topic, compacted before frame `compacted`, as it stands there. */
final case class Moment(until: Long, compacted: Long) {

  /** Refuses a file from which records have gone since, for newer ones that are not read. */
  def check(topic: String, file: SealedFile): Unit =
    if (file.below > compacted && file.below > until)
      throw new LogError(
        s"""topic "$topic" was compacted while it was read""",
        "Records that were to be read have gone for newer ones, which came after reading began.",
        "Read it again.")
}

/** The records of a topic in a range of the log become chunks: where each of its record batches lies, sealed or not.
  *
  * Sealed stretches that lie in the range as a whole are read without a look at their frames. Records that should be in the range and are
  * not are damage, and told: the offsets of a partition follow each other, within a stretch and from one to the next.
  */
final class Plan(log: Log, options: ReadOptions, moment: Option[Moment]) {
  private val topic = log.topic(options.topic)
  private val layouts = mutable.HashMap.empty[(Boolean, Int, Seq[String]), BlockLayout]

  /** The records of frames `[from, until)` within the places and offsets that the options allow, in the order of the log; within a
    * sealed stretch by partition.
    */
  def chunks(from: Long, until: Long): Seq[Chunk] = log.synchronized {
    val range = Places.of(from, until, options)
    if (range.isEmpty) return Nil
    val found = log.in(range.firstFrame, range.endFrame).toSeq.flatMap { case (stretch, end) =>
      val chunks =
        if (!log.isSealed(stretch)) inJournal(stretch, end, range)
        else if (range.covers(stretch.first, end)) wholly(stretch, end)
        else inSealed(stretch, end, range)
      chunks.flatMap(chunk => chunk.between(options.from(chunk.partition), options.until(chunk.partition)))
    }
    found.foreach(checkKept)
    log.unread.filter(_._1 < range.endFrame).foreach { case (first, next) =>
      throw new DamagedLog(
        s"frames $first to ${next - 1} cannot be read",
        s"They are the last of the log at ${log.folder}, and nothing tells what they held.",
        "Open the log with Log.open, which sets them aside.")
    }
    found
  }

  /** Where the records of a chunk lie whose file has gone: it has been sealed, or what was sealed has been rewritten. None if they are
    * nowhere.
    */
  def again(chunk: Chunk): Option[Seq[Chunk]] = log.synchronized {
    log.refresh()
    checkKept(chunk)
    val (from, until) = (chunk.base + chunk.skip, chunk.base + chunk.skip + chunk.take)
    log.in(chunk.stretch, chunk.stretch + 1).find(_._1.first == chunk.stretch).filter(each => log.isSealed(each._1)).map { case (stretch, end) =>
      stretch.listAgain()
      filesOf(stretch).filter(_.partition == chunk.partition).flatMap(inFile(stretch, end, _, from, until))
    }.filterNot(_.exists(_.file == chunk.file))
  }

  private def checkKept(chunk: Chunk): Unit = {
    val begin = log.begin(topic.name, chunk.partition)
    if (chunk.base + chunk.skip < begin) throw LogError.gone(topic.name, chunk.partition, chunk.base + chunk.skip, begin)
  }

  private def inJournal(stretch: Stretch, end: Long, range: Places): Seq[Chunk] = {
    holes(stretch, end, range).foreach(miss(_, stretch.journal.toString))
    val found = membersIn(stretch, range).map { member =>
      val block = member.block
      val (low, high) = range.offsets(member)
      Chunk(homeOf(block), fileOf(stretch, block), member.byte, block.bytes, block.crc, stretch.first, member.place, member.frame + 1, member.at,
        block.partition, block.base, block.width, (low - block.base).toInt, (high - low).toInt,
        layout(isSealed = false, block.schema, block.extras))
    }
    // Kafka is read one partition after the other: each has to be asked for.
    if (found.exists(_.home == Home.Kafka)) found.sortBy(_.partition) else found
  }

  private def homeOf(block: Block): Int = if (block.inKafka) Home.Kafka else if (block.file.isDefined) Home.Staged else Home.Journal

  private def fileOf(stretch: Stretch, block: Block): String =
    if (block.inKafka) "" else block.file.fold(stretch.journal)(log.staged).toString

  /** All of a sealed stretch. */
  private def wholly(stretch: Stretch, end: Long): Seq[Chunk] = {
    val (before, after) = (stretch.ends(topic.name), log.endsAfter(stretch, topic.name))
    val files = filesOf(stretch)
    after.indices.foreach { partition =>
      val begin = before.lift(partition).getOrElse(0L)
      val file = files.find(_.partition == partition)
      val reached = file.fold(begin)(found => found.base + found.count)
      def miss(from: Long, until: Long): Unit =
        if (from < until) this.miss(Hole(partition, from, until - from, stretch.first, end), stretch.sealedFolder.toString)
      file.foreach(found => miss(begin, found.base))
      miss(reached, after(partition))
    }
    files.flatMap(file => inFile(stretch, end, file, file.base, file.base + file.count))
  }

  /** A part of a sealed stretch. The headers say which offsets lie in it; the files hold all that lie between. */
  private def inSealed(stretch: Stretch, end: Long, range: Places): Seq[Chunk] = {
    val bounds = membersIn(stretch, range).groupMapReduce(_.block.partition)(range.offsets) { (one, other) => (one._1, other._2) }
    holes(stretch, end, range).filterNot { hole =>
      bounds.get(hole.partition).exists { case (low, high) => low <= hole.base && hole.end <= high }
    }.foreach(miss(_, stretch.sealedFolder.toString))
    filesOf(stretch).flatMap { file =>
      bounds.get(file.partition).toSeq.flatMap { case (low, high) => inFile(stretch, end, file, low, high) }
    }
  }

  private def membersIn(stretch: Stretch, range: Places): Seq[Member] =
    track(stretch).in(range.firstFrame, range.endFrame).toSeq.filter { member =>
      val (low, high) = range.offsets(member)
      low < high
    }

  private def holes(stretch: Stretch, end: Long, range: Places): Seq[Hole] =
    track(stretch).holes(range.firstFrame, range.endFrame, end, log.endsAfter(stretch, topic.name))

  private def miss(hole: Hole, where: String): Unit =
    if (options.allows(hole.partition, hole.base, hole.end))
      throw LogError.damaged(topic.name, hole.partition, hole.base, hole.count, s"In $where: the frames that held them cannot be read.")

  private def track(stretch: Stretch): Track = log.scanned(stretch).trackOf(topic.name)

  private def filesOf(stretch: Stretch): Seq[SealedFile] = stretch.files.toSeq.filter(_.topic == topic.name)

  private def inFile(stretch: Stretch, end: Long, file: SealedFile, from: Long, until: Long): Seq[Chunk] = {
    moment.foreach(_.check(topic.name, file))
    val path = stretch.sealedFolder.resolve(file.name).toString
    val columns = layout(isSealed = true, file.schema, file.extras)
    file.batches.toSeq.flatMap { batch =>
      val count = math.toIntExact(batch.end - batch.base)
      Chunk(if (file.sparse) Home.Sparse else Home.Sealed, path, batch.start, batch.bytes, batch.crc, stretch.first,
        stretch.first << Place.IndexBits, end, 0L, file.partition, batch.base, count, 0, count, columns).between(from, until)
    }
  }

  private def layout(isSealed: Boolean, version: Int, extras: Array[String]): BlockLayout =
    layouts.getOrElseUpdate((isSealed, version, extras.toSeq), new BlockLayout(isSealed, topic.version(version), extras))
}
