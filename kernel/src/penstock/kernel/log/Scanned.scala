package penstock.kernel.log

import com.fasterxml.jackson.databind.JsonNode

import scala.collection.mutable

/** All that the frames of a stretch say, as far as they have been looked at.
  *
  * In: frames in order.
  * State: a track per topic, the catalog, and which frames were lost.
  */
final class Scanned(base: Map[String, Standing], first: Long) {
  private val lost = new Lost(first)
  private val tracks = mutable.HashMap.empty[String, Track]
  private var known = base

  def topics: Map[String, Topic] = known.map { case (name, standing) => name -> standing.topic }

  /** The first offset of a topic's partition that is kept. */
  def begin(topic: String, partition: Int): Long = known.get(topic).fold(0L)(_.begins.lift(partition).getOrElse(0L))

  /** The frame before which only the newest record of each key of a topic is there for sure. */
  def compacted(topic: String): Long = known.get(topic).fold(0L)(_.compacted)

  /** The number after that of the last frame. */
  def next: Long = lost.next

  def add(found: Found): Unit = {
    val header = found.header
    lost.pass(header.frame)
    header.control.foreach { control =>
      try declared(control)
      catch { case error: Exception => throw LogError.senseless(s"the header of frame ${header.frame}", error) }
    }
    header.blocks.foreach(block => track(block.topic).add(header, found.body, block))
    header.punctuation.foreach(each => track(each.topic).add(header.frame, each))
  }

  /** What the stretch holds for a topic, or an empty track if nothing. */
  def trackOf(topic: String): Track = tracks.getOrElse(topic, begun(topic, base))

  /** The catalog after the last frame. */
  def standing: Map[String, Standing] =
    known.map { case (name, standing) => name -> tracks.get(name).fold(standing)(_.standing(standing)) }

  private def begun(topic: String, catalog: Map[String, Standing]): Track =
    new Track(catalog.getOrElse(topic, Standing.created(nameless(topic))), first, lost)

  private def declared(control: JsonNode): Unit = {
    Option(control.get("create")).foreach(create => learn(Topic.of(create.get("topic").asText, create)))
    Option(control.get("columns")).foreach { columns =>
      known.get(columns.get("topic").asText).foreach { standing =>
        learn(standing.topic.grown(Topic.schema(columns.get("schema"))))
      }
    }
    Option(control.get("begins")).foreach { gone =>
      known.get(gone.get("topic").asText).foreach(standing => known += standing.topic.name -> standing.without(gone))
    }
    Option(control.get("compacted")).filter(_.has("below")).foreach { run =>
      known.get(run.get("topic").asText).foreach { standing =>
        known += standing.topic.name -> standing.copy(compacted = math.max(standing.compacted, run.get("below").asLong))
      }
    }
  }

  private def learn(topic: Topic): Unit = known += topic.name -> known.get(topic.name).fold(Standing.created(topic))(_.copy(topic = topic))

  private def track(topic: String): Track =
    tracks.getOrElseUpdate(topic, begun(topic, known))

  // The frame that created it may be damaged; its records stay readable by offset.
  private def nameless(topic: String): Topic = Topic(topic, 0, Nil, Vector.empty)
}
