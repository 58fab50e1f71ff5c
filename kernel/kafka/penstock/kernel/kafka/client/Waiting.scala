package penstock.kernel.kafka.client

import org.slf4j.LoggerFactory
import penstock.kernel.kafka.Origin
import penstock.kernel.log.LogError

/** How long brokers have been silent: it is said after a while, and has a bound. */
final class Waiting(origin: Origin, topic: String, partition: Int) {
  private val since = System.nanoTime
  private var said = false

  /** They have answered. */
  def end(): Unit = if (said) Waiting.log.warn(s"$origin answers again")

  /** Nothing has come yet; whether this is now said for the first time. */
  def goesOn(offset: Long): Boolean = {
    val seconds = (System.nanoTime - since) / 1000000000L
    if (seconds >= origin.patience)
      throw new LogError(
        s"$origin has not answered for $seconds seconds",
        s"""Topic "$topic", partition $partition was to be read from offset $offset on.""",
        "Start the brokers; the pipeline goes on where it was.")
    val isLong = !said && seconds >= Waiting.Silence
    if (isLong) {
      said = true
      Waiting.log.warn(s"""$origin does not answer: waiting for topic "$topic", partition $partition, offset $offset""")
    }
    isLong
  }
}

object Waiting {
  private val log = LoggerFactory.getLogger(classOf[Waiting])
  private val Silence = 3L
}
