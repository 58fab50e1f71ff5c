package penstock.kernel.kafka

/** A message as Kafka keeps it.
  *
  * @param time the producer's time of it in milliseconds where the topic keeps that, else -1
  */
final class Message(val offset: Long, val time: Long, val key: Array[Byte], val value: Array[Byte], val headers: Array[(String, Array[Byte])])

/** Messages of one partition in the order of their offsets. */
trait Messages extends AutoCloseable {

  /** The next one; null after the last. */
  def next(): Message
}

/** Talks to Kafka: what is compiled against its client, in a jar of its own (`kernel/kafka`). */
trait Client {

  /** The committed messages of a partition with offsets in `[from, until)`.
    *
    * @param topic its name in the log, for the text of errors
    */
  def messages(origin: Origin, topic: String, partition: Int, from: Long, until: Long): Messages
}
