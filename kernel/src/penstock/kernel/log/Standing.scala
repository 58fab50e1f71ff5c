package penstock.kernel.log

import com.fasterxml.jackson.databind.JsonNode

/** A topic and how far it has come at some point of the log.
  *
  * @param ends the next offset of each partition
  * @param top the largest event time of all partitions, `Steps.None` if there is none
  * @param until punctuation: scope -> time
  * @param begins the first offset of each partition that is kept
  * @param compacted before this frame only the newest record of each key is there for sure
  */
final case class Standing(
    topic: Topic,
    ends: Array[Long],
    top: Long,
    until: Map[String, Long],
    partitions: Pace.Standing,
    producers: Pace.Standing,
    begins: Array[Long],
    compacted: Long) {

  /** With what an entry of a frame says of its records that are kept no longer. */
  def without(gone: JsonNode): Standing =
    copy(begins = Json.items(gone.get("offsets")).map(_.asLong).zip(begins.iterator).map { case (one, other) => math.max(one, other) }.toArray)
}

object Standing {
  def of(name: String, found: JsonNode): Standing = {
    val tops = Json.items(found.get("tops")).map(Reached.time).toSeq
    val until = Json.fields(found.get("until")).map { case (scope, time) => scope -> time.asLong }.toMap
    val ends = Json.items(found.get("ends")).map(_.asLong).toArray
    val producers = Json.fields(found.get("producers")).map { case (producer, reached) => producer -> Reached.of(reached) }.toSeq
    Standing(Topic.of(name, found), ends, tops.foldLeft(Steps.None)(math.max), until,
      Pace.of(numbered(tops), found.get("partition_pace")), Pace.of(producers, found.get("producer_pace")),
      if (found.has("begins")) Json.items(found.get("begins")).map(_.asLong).toArray else new Array[Long](ends.length),
      found.path("compaction").path("below").asLong(0))
  }

  def created(topic: Topic): Standing =
    Standing(topic, new Array[Long](topic.partitions), Steps.None, Map.empty,
      Pace.begun(numbered(Seq.fill(topic.partitions)(Steps.None))), Pace.begun(Nil), new Array[Long](topic.partitions), 0L)

  private def numbered(tops: Seq[Long]): Seq[(String, Reached)] =
    tops.zipWithIndex.map { case (top, partition) => partition.toString -> Reached(Steps.None, top) }
}
