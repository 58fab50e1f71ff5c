package penstock.kernel.kafka

import penstock.kernel.log.LogError

/** Finds the client: Spark has neither it nor Kafka's own jar unless both were added to the session. */
object Clients {
  private val Name = "penstock.kernel.kafka.client.Consumers"

  lazy val found: Client =
    try Class.forName(Name, true, Thread.currentThread.getContextClassLoader).getDeclaredConstructor().newInstance().asInstanceOf[Client]
    catch {
      case _: ClassNotFoundException | _: NoClassDefFoundError =>
        throw new LogError(
          "the jars for Kafka are missing",
          "This executor has no kernel-kafka.jar, or no kafka-clients.",
          "Run: make kafka-jars. On a cluster, executors get them from the driver, or name them in spark.jars.")
    }
}
