package penstock.kernel.log

import scala.collection.mutable.ArrayBuffer

/** Whose progress the watermark is: that of the records together, or the least of all partitions or producers. */
object By {
  val Stream = "stream"
  val Partition = "partition"
  val Producer = "producer"
}

/** What all partitions, or all producers, have reached, from frame to frame within one stretch.
  *
  * In: what the stretch's frames say, in order; more may come.
  * State: their pace, how the level rises, and how much has been taken in.
  */
final class Paced(standing: Pace.Standing, delay: Option[Long], by: String, scope: String) {
  private val pace = new Pace(standing)
  private val steps = new Steps(pace.level(delay, scope))
  private var seen = 0

  def upTo(history: ArrayBuffer[Told]): Steps = {
    while (seen < history.length) {
      history(seen).to(pace, by)
      steps.raise(history(seen).frame, pace.level(delay, scope))
      seen += 1
    }
    steps
  }
}
