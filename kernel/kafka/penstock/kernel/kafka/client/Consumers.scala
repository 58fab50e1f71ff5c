package penstock.kernel.kafka.client

import java.time.Duration
import java.util.Properties

import org.apache.kafka.clients.consumer.KafkaConsumer
import org.apache.kafka.common.{KafkaException, TopicPartition}
import org.apache.kafka.common.serialization.ByteArrayDeserializer
import penstock.kernel.kafka.{Client, Messages, Origin}
import penstock.kernel.log.LogError

import scala.collection.mutable

/** Kafka's consumers, kept from one task to the next: a new one takes a tenth of a second until it knows its brokers. */
final class Consumers extends Client {
  private val idle = mutable.LinkedHashMap.empty[Consumers.Key, Consumers.Consumer]

  override def messages(origin: Origin, topic: String, partition: Int, from: Long, until: Long): Messages = {
    val key = Consumers.Key(origin, new TopicPartition(origin.name(topic), partition))
    new Partition(this, key, taken(key), topic, from, until)
  }

  /** The one that has read there before, else any that knows these brokers, else a new one. */
  private def taken(key: Consumers.Key): Consumers.Consumer = synchronized {
    idle.remove(key).orElse(idle.keys.find(_.origin == key.origin).flatMap(idle.remove))
  }.getOrElse(Consumers.made(key.origin))

  def giveBack(key: Consumers.Key, consumer: Consumers.Consumer): Unit = {
    val left = synchronized {
      val before = idle.put(key, consumer)
      before ++ (if (idle.size > Consumers.Most) idle.remove(idle.head._1) else None)
    }
    left.foreach(Consumers.close)
  }
}

object Consumers {
  type Consumer = KafkaConsumer[Array[Byte], Array[Byte]]

  final case class Key(origin: Origin, partition: TopicPartition)

  private val Most = 64

  private def made(origin: Origin): Consumer = {
    val settings = new Properties
    origin.settings.foreach { case (name, value) => settings.setProperty(name, value) }
    settings.setProperty("bootstrap.servers", origin.servers)
    settings.setProperty("isolation.level", "read_committed")
    settings.setProperty("enable.auto.commit", "false")
    settings.setProperty("auto.offset.reset", "none")
    settings.setProperty("allow.auto.create.topics", "false")
    settings.setProperty("max.poll.records", "5000")
    settings.setProperty("max.partition.fetch.bytes", (8 << 20).toString)
    settings.setProperty("fetch.max.bytes", (32 << 20).toString)
    settings.remove("group.id")
    try new KafkaConsumer(settings, new ByteArrayDeserializer, new ByteArrayDeserializer)
    catch {
      // What it says of a setting may hold the setting.
      case error: KafkaException =>
        throw new LogError(s"Kafka's client does not take the settings for ${origin.servers}", s"It says ${error.getClass.getSimpleName}.",
          "Look at the settings that the log was opened with.")
    }
  }

  def close(consumer: Consumer): Unit = consumer.close(Duration.ZERO)
}
