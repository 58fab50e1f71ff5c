package penstock.kernel.log

/** The watermark of a topic from frame to frame, within one stretch: what its events have reached, or punctuation, whichever is later.
  *
  * @param event what raises it, less how much
  */
final class Levels(event: Option[(Steps, Long)], punctuation: Seq[Steps]) {

  /** The watermark that stands before `frame`, `Steps.None` if there is none yet. */
  def before(frame: Long): Long = {
    var level = Steps.None
    event.foreach { case (tops, delay) => if (tops.before(frame) != Steps.None) level = tops.before(frame) - delay }
    punctuation.foreach(until => level = math.max(level, until.before(frame)))
    level
  }

  /** The frames in `[from, until)` that may raise it, ascending. */
  def raisedIn(from: Long, until: Long): Array[Long] =
    (event.map(_._1) ++ punctuation).flatMap(_.raisedIn(from, until)).toArray.sorted.distinct
}
