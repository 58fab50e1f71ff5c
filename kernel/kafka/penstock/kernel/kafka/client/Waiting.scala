package penstock.kernel.kafka.client

import org.slf4j.LoggerFactory
import penstock.kernel.log.LogError

/** How long brokers have been silent: it is said after a while, and has a bound. */
final class Waiting(servers: String) {
  private var since = System.nanoTime
  private var said = false

  /** They have answered. */
  def again(): Unit = {
    if (said) Waiting.log.warn(s"Kafka at $servers answers again")
    since = System.nanoTime
    said = false
  }

  /** Nothing has come. */
  def check(topic: String, partition: Int, offset: Long): Unit = {
    val seconds = (System.nanoTime - since) / 1000000000L
    if (!said && seconds >= Waiting.Patience) {
      said = true
      Waiting.log.warn(s"""Kafka at $servers does not answer: waiting for topic "$topic", partition $partition, offset $offset""")
    }
    if (seconds >= Waiting.Most)
      throw new LogError(
        s"Kafka at $servers has not answered for $seconds seconds",
        s"""Topic "$topic", partition $partition was to be read from offset $offset on.""",
        "Start the brokers; the pipeline goes on where it was.")
  }
}

object Waiting {
  private val log = LoggerFactory.getLogger(classOf[Waiting])
  private val Patience = 5L
  val Most = 600L
}
