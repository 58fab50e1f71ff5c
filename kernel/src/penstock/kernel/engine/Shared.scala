package penstock.kernel.engine

import java.io.IOException
import java.nio.file.{Files, NoSuchFileException, Path, Paths}
import java.util.{List => JavaList}

import org.apache.spark.{SparkContext, SparkEnv}

import scala.jdk.CollectionConverters._

/** Whether executors see a file as this process does. A folder that all machines should share may not be mounted on one of them: state would
  * be written where nobody finds it again.
  */
object Shared {

  /** Hosts whose executors do not, each with what is found there: no file, another one, or a folder in which nothing can be written though that
    * is needed. Executors that come later are not asked.
    */
  def unseen(context: SparkContext, file: String, writes: Boolean): JavaList[(String, String)] = {
    val wanted = Files.readAllBytes(Paths.get(file))
    val tasks = 2 * math.max(1, context.defaultParallelism)
    context.parallelize(0 until tasks, tasks).mapPartitions { _ =>
      found(Paths.get(file), wanted, writes).map(SparkEnv.get.blockManager.blockManagerId.host -> _).iterator
    }.collect().distinct.sorted.toSeq.asJava
  }

  /** What is wrong with the file here, if anything is. */
  def found(file: Path, wanted: Array[Byte], writes: Boolean): Option[String] =
    try {
      if (!Files.readAllBytes(file).sameElements(wanted)) Some(s"$file is another file.")
      else if (writes && !Files.isWritable(file.getParent)) Some(s"nothing can be written to ${file.getParent}.")
      else None
    } catch {
      case _: NoSuchFileException => Some(s"there is no $file.")
      case error: IOException => Some(s"$file cannot be read: ${error.getClass.getSimpleName}.")
    }
}
