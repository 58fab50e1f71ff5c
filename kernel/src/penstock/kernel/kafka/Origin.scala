package penstock.kernel.kafka

import java.nio.file.{Files, Path}

import penstock.kernel.log.{Json, LogError}

/** Where the records of a log on Kafka lie, and how its brokers are talked to: what `kafka.json` in the log's folder says.
  *
  * It travels to the executors inside of tasks. The settings may hold secrets, so that it says nothing of them.
  *
  * @param patience how many seconds brokers that do not answer are waited for
  */
final class Origin(val servers: String, val prefix: String, val settings: Map[String, String], val patience: Int) extends Serializable {

  /** The name of a log's topic in Kafka. */
  def name(topic: String): String = prefix + topic

  override def equals(other: Any): Boolean = other match {
    case that: Origin => servers == that.servers && prefix == that.prefix && settings == that.settings && patience == that.patience
    case _ => false
  }
  override def hashCode: Int = (servers, prefix, settings).hashCode
  override def toString: String = s"Kafka at $servers"
}

object Origin {
  private val Name = "kafka.json"
  private val Patience = 600

  /** Whether the records of the log in this folder lie in Kafka. */
  def isIn(folder: Path): Boolean = Files.exists(folder.resolve(Name))

  /** Of the log in this folder; None if its records are its own. */
  def in(folder: Path): Option[Origin] =
    if (!isIn(folder)) None
    else try {
      val found = Json.tree(Files.readAllBytes(folder.resolve(Name)))
      val settings = Json.fields(found.path("settings")).map { case (name, value) => name -> value.asText }.toMap
      Some(new Origin(found.get("bootstrap").asText, found.path("prefix").asText(""), settings, found.path("patience").asInt(Patience)))
    } catch {
      case _: Exception => throw new LogError(s"${folder.resolve(Name)} cannot be read", hint = "Delete the folder: it is made again from Kafka.")
    }
}
