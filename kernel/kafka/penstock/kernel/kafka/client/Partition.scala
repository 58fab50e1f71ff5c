package penstock.kernel.kafka.client

import java.time.Duration
import java.util.{Collections, Iterator => JIterator}

import org.apache.kafka.clients.consumer.{ConsumerRecord, OffsetOutOfRangeException}
import org.apache.kafka.common.KafkaException
import org.apache.kafka.common.errors.{InterruptException, RetriableException}
import org.apache.kafka.common.record.TimestampType
import penstock.kernel.kafka.{Message, Messages}
import penstock.kernel.log.LogError

/** The committed messages of a partition with offsets in `[from, until)`.
  *
  * Brokers that are away are waited for, up to a bound; what is not there any more is an error that names what is.
  */
final class Partition(pool: Consumers, key: Consumers.Key, consumer: Consumers.Consumer, topic: String, from: Long, until: Long) extends Messages {
  private val number = key.partition.partition
  private var records: JIterator[ConsumerRecord[Array[Byte], Array[Byte]]] = Collections.emptyIterator
  private var isDone = false
  // A consumer that has not come to its end may be in any state.
  private var isWhole = false

  guarded {
    if (!consumer.assignment.contains(key.partition)) consumer.assign(Collections.singleton(key.partition))
    consumer.seek(key.partition, from)
  }

  override def next(): Message = {
    if (!records.hasNext && !isDone) fetch()
    if (isDone) null
    else {
      val record = records.next()
      if (record.offset < until) message(record)
      else {
        isDone = true
        null
      }
    }
  }

  override def close(): Unit = if (isWhole || isDone) pool.giveBack(key, consumer) else Consumers.close(consumer)

  /** Gets more messages, or knows that there are none. */
  private def fetch(): Unit = {
    isWhole = false
    var waiting = new Waiting(key.origin, topic, number)
    var position = guarded(consumer.position(key.partition))
    // Whoever asks for more than there is waits.
    isDone = position >= until
    while (!records.hasNext && !isDone) {
      records = guarded(consumer.poll(Partition.Poll)).records(key.partition).iterator
      val now = guarded(consumer.position(key.partition))
      isDone = !records.hasNext && now >= until
      if (records.hasNext || now > position) {
        waiting.end()
        waiting = new Waiting(key.origin, topic, number)
      } else if (waiting.goesOn(now)) checkTopic()
      position = now
    }
    isWhole = true
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
      case error: InterruptException => throw error
      case error: KafkaException => throw refused(s"${error.getClass.getSimpleName}: ${error.getMessage}")
    }

  private def refused(why: String): LogError =
    new LogError(
      s"""topic "$topic", partition $number cannot be read from ${key.origin}""", why, "Is the topic there, and may the user read it?")

  /** Brokers that have no such topic do not say so to who reads on. */
  private def checkTopic(): Unit = {
    val found =
      try Some(consumer.partitionsFor(key.partition.topic, Partition.Look))
      catch { case _: RetriableException => None }
    found.filter(all => all == null || all.size <= number).foreach { all =>
      throw refused(s"""Kafka has ${if (all == null || all.isEmpty) "no topic" else s"${all.size} partitions of"} "${key.partition.topic}".""")
    }
  }

  private def gone(): LogError = {
    val bounds = Collections.singleton(key.partition)
    val begin = consumer.beginningOffsets(bounds).get(key.partition).longValue
    val end = consumer.endOffsets(bounds).get(key.partition).longValue
    if (from < begin) LogError.gone(topic, number, from, begin)
    else
      new LogError(
        s"""topic "$topic", partition $number, offset $from is not in Kafka""",
        s"The partition ends before offset $end: it has been made anew, or has lost its end.",
        "Restore the topic, or begin with another log.")
  }
}

object Partition {
  private val Poll = Duration.ofMillis(500)
  private val Look = Duration.ofSeconds(2)
  private val NoHeaders = Array.empty[(String, Array[Byte])]
}
