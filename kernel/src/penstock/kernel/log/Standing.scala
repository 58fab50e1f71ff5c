package penstock.kernel.log

import com.fasterxml.jackson.databind.JsonNode

/** A topic and how far it has come at some point of the log.
  *
  * @param ends the next offset of each partition
  * @param top the largest event time of all partitions, `Steps.None` if there is none
  * @param until punctuation: scope -> time
  */
final case class Standing(topic: Topic, ends: Array[Long], top: Long, until: Map[String, Long])

object Standing {
  def of(name: String, found: JsonNode): Standing = {
    val tops = Json.items(found.get("tops")).filterNot(_.isNull).map(_.asLong)
    val until = Json.fields(found.get("until")).map { case (scope, time) => scope -> time.asLong }.toMap
    val ends = Json.items(found.get("ends")).map(_.asLong).toArray
    Standing(Topic.of(name, found), ends, tops.foldLeft(Steps.None)(math.max), until)
  }

  def created(topic: Topic): Standing = Standing(topic, new Array[Long](topic.partitions), Steps.None, Map.empty)
}
