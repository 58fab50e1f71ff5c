package penstock.kernel.source

import penstock.kernel.log._

import scala.collection.mutable

/** The records of a topic in a range of the log become chunks: where each of its record batches lies, sealed or not.
  *
  * Sealed stretches that lie in the range as a whole are read without a look at their frames.
  */
final class Plan(log: Log, options: ReadOptions) {
  private val topic = log.topic(options.topic)
  private val layouts = mutable.HashMap.empty[(Boolean, Int, Seq[String]), BlockLayout]

  /** The records of frames `[from, until)` within the offsets that the options allow, in the order of the log; within a sealed
    * stretch by partition.
    */
  def chunks(from: Long, until: Long): Seq[Chunk] = log.synchronized {
    log.in(from, until).toSeq.flatMap { case (stretch, end) =>
      val all = from <= stretch.first && until >= end
      if (!log.isSealed(stretch)) inJournal(stretch, math.max(from, stretch.first), until)
      else if (all) filesOf(stretch).flatMap(file => inFile(stretch, end, file, file.base, file.base + file.count))
      else inSealed(stretch, end, from, until)
    }.flatMap(chunk => chunk.between(options.from(chunk.partition), options.until(chunk.partition)))
  }

  /** Offsets `[from, until)` of a partition in a stretch that has been sealed. */
  def sealedChunks(first: Long, partition: Int, from: Long, until: Long): Seq[Chunk] = log.synchronized {
    val found = log.in(first, first + 1).find(_._1.first == first).filter(each => log.isSealed(each._1))
    val (stretch, end) = found.getOrElse(throw new LogError(
      s"""offsets $from to ${until - 1} of topic "${topic.name}", partition $partition are gone""",
      s"The stretch that begins with frame $first was removed while they were read."))
    filesOf(stretch).filter(_.partition == partition).flatMap(inFile(stretch, end, _, from, until))
  }

  private def inJournal(stretch: Stretch, from: Long, until: Long): Seq[Chunk] =
    log.scanned(stretch).trackOf(topic.name).in(from, until).toSeq.filter(_.block.count > 0).map { member =>
      val block = member.block
      if (member.missing > 0 && options.allows(block.partition, block.base - member.missing, block.base))
        throw LogError.damaged(topic.name, block.partition, block.base - member.missing, member.missing,
          s"the headers of a frame before frame ${member.frame}, in ${stretch.journal}")
      val (home, file) = block.file.fold(Home.Journal -> stretch.journal)(name => Home.Staged -> log.staged(name))
      Chunk(home, file.toString, member.byte, block.bytes, block.crc, stretch.first,
        member.frame << Chunk.IndexBits | block.index, member.frame + 1, member.at,
        block.partition, block.base, block.count, 0, block.count, layout(isSealed = false, block.schema, block.extras))
    }

  private def inSealed(stretch: Stretch, end: Long, from: Long, until: Long): Seq[Chunk] = {
    val members = log.scanned(stretch).trackOf(topic.name).in(from, until).filter(_.block.count > 0)
    filesOf(stretch).flatMap { file =>
      val blocks = members.filter(_.block.partition == file.partition).map(_.block)
      if (blocks.isEmpty) Nil else inFile(stretch, end, file, blocks.head.base, blocks.last.base + blocks.last.count)
    }
  }

  private def filesOf(stretch: Stretch): Seq[SealedFile] = stretch.files.toSeq.filter(_.topic == topic.name)

  private def inFile(stretch: Stretch, end: Long, file: SealedFile, from: Long, until: Long): Seq[Chunk] = {
    val path = stretch.sealedFolder.resolve(file.name).toString
    val columns = layout(isSealed = true, file.schema, file.extras)
    val bases = file.batches.scanLeft(file.base)(_ + _.count)
    file.batches.toSeq.zip(bases).flatMap { case (batch, base) =>
      Chunk(Home.Sealed, path, batch.start, batch.bytes, batch.crc, stretch.first,
        stretch.first << Chunk.IndexBits, end, 0L, file.partition, base, batch.count, 0, batch.count, columns).between(from, until)
    }
  }

  private def layout(isSealed: Boolean, version: Int, extras: Array[String]): BlockLayout =
    layouts.getOrElseUpdate((isSealed, version, extras.toSeq), new BlockLayout(isSealed, topic.version(version), extras))
}
