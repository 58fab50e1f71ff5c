package penstock.kernel.log

import scala.collection.mutable

/** All that the frames of a stretch say, as far as they have been looked at.
  *
  * In: frames in order.
  * State: a track per topic, and the catalog.
  */
final class Scanned(base: Map[String, Standing]) {
  private val tracks = mutable.HashMap.empty[String, Track]
  private var known = base

  def topics: Map[String, Topic] = known.map { case (name, standing) => name -> standing.topic }

  def add(found: Found): Unit = {
    val header = found.header
    header.control.foreach { control =>
      Option(control.get("create")).foreach(create => learn(Topic.of(create.get("topic").asText, create)))
      Option(control.get("columns")).foreach { columns =>
        known.get(columns.get("topic").asText).foreach { standing =>
          learn(standing.topic.grown(Topic.schema(columns.get("schema"), standing.topic.key)))
        }
      }
    }
    header.blocks.foreach(block => track(block.topic).add(header.frame, header.at, found.body, block))
    header.punctuation.foreach(each => track(each.topic).add(header.frame, each))
  }

  /** What the stretch holds for a topic, or an empty track if nothing. */
  def trackOf(topic: String): Track = tracks.getOrElse(topic, new Track(base.getOrElse(topic, Standing.created(nameless(topic)))))

  /** The catalog after the last frame. */
  def standing: Map[String, Standing] =
    known.map { case (name, standing) => name -> tracks.get(name).fold(standing)(_.standing(standing.topic)) }

  private def learn(topic: Topic): Unit = known += topic.name -> known.get(topic.name).fold(Standing.created(topic))(_.copy(topic = topic))

  private def track(topic: String): Track =
    tracks.getOrElseUpdate(topic, new Track(known.getOrElse(topic, Standing.created(nameless(topic)))))

  // The frame that created it may be damaged; its records stay readable by offset.
  private def nameless(topic: String): Topic = Topic(topic, 0, Nil, Vector.empty)
}
