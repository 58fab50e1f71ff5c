package penstock.kernel.kafka.client

import java.time.Duration
import java.util.{Collections, Iterator => JIterator}

import org.apache.kafka.clients.consumer.{ConsumerRecord, OffsetOutOfRangeException}
import org.apache.kafka.common.KafkaException
import org.apache.kafka.common.errors.{AuthenticationException, AuthorizationException, InterruptException, RetriableException}
import org.apache.kafka.common.record.TimestampType
import org.slf4j.LoggerFactory
import penstock.kernel.kafka.{Message, Messages}
import penstock.kernel.log.LogError

/** The committed messages of a partition with offsets in `[from, until)`.
  *
  * Brokers that are away are waited for, up to a bound; what is not there any more is an error that names what is.
  */
final class Partition(pool: Consumers, key: Consumers.Key, consumer: Consumers.Consumer, topic: String, from: Long, until: Long) extends Messages {
  private var records: JIterator[ConsumerRecord[Array[Byte], Array[Byte]]] = Collections.emptyIterator
  private var isDone = false
  private var isBroken = false

  assign()

  override def next(): Message = {
    while (!records.hasNext && !isDone) fetch()
    if (isDone) null
    else {
      val record = records.next()
      if (record.offset >= until) {
        isDone = true
        null
      } else message(record)
    }
  }

  override def close(): Unit = if (isBroken) Consumers.close(consumer) else pool.giveBack(key, consumer)

  private def assign(): Unit = guarded {
    if (!consumer.assignment.contains(key.partition)) consumer.assign(Collections.singleton(key.partition))
    consumer.seek(key.partition, from)
  }

  /** Gets more messages, or knows that there are none. */
  private def fetch(): Unit = {
    val wait = new Waiting(key.origin.servers)
    var position = from
    while (!records.hasNext && !isDone) {
      records = guarded(consumer.poll(Partition.Poll)).records(key.partition).iterator
      val now = guarded(consumer.position(key.partition))
      if (!records.hasNext) {
        isDone = now >= until
        if (now > position) wait.again() else if (!isDone) wait.check(topic, key.partition.partition, now)
      }
      position = now
    }
  }

  private def message(record: ConsumerRecord[Array[Byte], Array[Byte]]): Message = {
    val time = if (record.timestampType == TimestampType.CREATE_TIME) record.timestamp else -1L
    val headers = record.headers.toArray
    val found = if (headers.isEmpty) Partition.NoHeaders else headers.map(header => header.key -> header.value)
    new Message(record.offset, time, record.key, record.value, found)
  }

  private def guarded[T](call: => T): T =
    try call
    catch {
      case _: OffsetOutOfRangeException => throw gone()
      case error: InterruptException =>
        isBroken = true
        throw error
      case error: KafkaException =>
        isBroken = true
        throw new LogError(
          s"""topic "$topic", partition ${key.partition.partition} cannot be read from Kafka at ${key.origin.servers}""",
          s"${error.getClass.getSimpleName}: ${error.getMessage}",
          "Is the topic there, and may the user read it?")
    }

  private def gone(): LogError = {
    val bounds = Collections.singleton(key.partition)
    val (begin, end) = (consumer.beginningOffsets(bounds).get(key.partition).longValue, consumer.endOffsets(bounds).get(key.partition).longValue)
    if (from < begin) LogError.gone(topic, key.partition.partition, from, begin)
    else
      new LogError(
        s"""topic "$topic", partition ${key.partition.partition}, offset $from is not in Kafka""",
        s"The partition ends before offset $end: it has been made anew, or lost its end.",
        "Restore the topic, or begin with another log.")
  }
}

object Partition {
  private val Poll = Duration.ofMillis(500)
  private val NoHeaders = Array.empty[(String, Array[Byte])]
}
