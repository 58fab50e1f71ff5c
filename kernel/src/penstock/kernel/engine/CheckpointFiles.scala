package penstock.kernel.engine

import java.io.{BufferedOutputStream, FileNotFoundException, IOException}
import java.nio.file.{FileAlreadyExistsException, Path => NioPath, Paths}
import java.util.UUID
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, FileSystem, Path, PathFilter}
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/** Checkpoint files on a local disk: no child processes, no checksum files beside, and synced.
  *
  * A file appears whole or not at all, and when `close` returns, it and its name survive a power failure: the journal's frame of a batch is
  * written after the batch's checkpoint, and must never be the only one of the two that is left.
  */
class CheckpointFiles(files: FileSystem, path: Path) extends CheckpointFileManager {
  private val root = files.makeQualified(path)
  private val disk = files match {
    case ours: LocalFiles => ours.disk
    case _ => new Disk
  }

  /** As Spark makes one. */
  def this(path: Path, configuration: Configuration) = this(path.getFileSystem(configuration), path)

  override def createAtomic(path: Path, overwrite: Boolean): CancellableFSDataOutputStream = {
    files.mkdirs(path.getParent)
    val target = Paths.get(path.toUri.getPath)
    new SyncedFile(disk, target.resolveSibling(s".${target.getFileName}.${UUID.randomUUID}.tmp"), target, overwrite)
  }
  override def open(path: Path): FSDataInputStream = files.open(path)
  override def list(path: Path, filter: PathFilter): Array[FileStatus] = files.listStatus(path, filter)
  override def mkdirs(path: Path): Unit = files.mkdirs(path)
  override def exists(path: Path): Boolean = files.exists(path)
  override def delete(path: Path): Unit =
    try files.delete(path, true)
    catch { case _: FileNotFoundException => () }
  override def isLocal: Boolean = true
  override def createCheckpointDirectory(): Path = {
    mkdirs(root)
    root
  }
  override def close(): Unit = ()
}

/** A file that is written under another name, then synced and renamed. */
private final class SyncedFile(disk: Disk, unfinished: NioPath, target: NioPath, overwrite: Boolean)
    extends CancellableFSDataOutputStream(new BufferedOutputStream(disk.write(unfinished), 1 << 16)) {
  private var ended = false

  override def close(): Unit = if (!ended) {
    ended = true
    super.close()
    disk.sync(unfinished)
    if (overwrite) disk.rename(unfinished, target)
    else
      try disk.link(unfinished, target)
      catch { case _: FileAlreadyExistsException => throw new org.apache.hadoop.fs.FileAlreadyExistsException(target.toString) }
      finally disk.remove(unfinished)
    disk.sync(target.getParent)
  }

  override def cancel(): Unit = if (!ended) {
    ended = true
    try super.close()
    catch { case _: IOException => () }
    disk.remove(unfinished)
  }
}
