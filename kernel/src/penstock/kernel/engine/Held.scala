package penstock.kernel.engine

import java.nio.ByteBuffer
import java.nio.channels.{FileChannel, FileLock}
import java.nio.file.{Path, Paths, StandardOpenOption}
import scala.collection.mutable

/** The checkpoints that this Java process works on, each by a lock that it has until it ends.
  *
  * Its Python process may die first: what Spark is writing then must be over before another process begins to read it.
  */
object Held {
  private val locks = mutable.Map.empty[Path, FileLock]

  /** Whether this process has the lock now; whoever has it, and where, is named in the file. */
  def take(path: String, host: String): Boolean = synchronized {
    val file = Paths.get(path).toAbsolutePath
    locks.contains(file) || taken(file, host).exists { lock =>
      locks(file) = lock
      true
    }
  }

  private def taken(file: Path, host: String): Option[FileLock] = {
    val channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE)
    val lock = Option(channel.tryLock())
    if (lock.isEmpty) channel.close()
    else channel.truncate(0).write(ByteBuffer.wrap(s"${ProcessHandle.current.pid} on $host".getBytes("UTF-8")))
    lock
  }
}
