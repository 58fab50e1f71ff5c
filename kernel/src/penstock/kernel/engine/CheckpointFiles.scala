package penstock.kernel.engine

import java.io.{BufferedOutputStream, FileNotFoundException, IOException}
import java.nio.channels.FileChannel
import java.nio.file.{FileAlreadyExistsException, Files, Path => NioPath, Paths, StandardCopyOption, StandardOpenOption}
import java.util.UUID
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, FileSystem, LocalFileSystem, Path, PathFilter}
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/** Checkpoint files on a local disk, by java.nio: no child processes, no checksum files beside, and synced.
  *
  * A file appears whole or not at all, and when `close` returns, it and its name survive a power failure: the journal's frame of a batch is
  * written after the batch's checkpoint, and must never be the only one of the two that is left.
  */
class CheckpointFiles(path: Path, configuration: Configuration) extends CheckpointFileManager {
  private val files: FileSystem = path.getFileSystem(configuration) match {
    case local: LocalFileSystem => local.getRawFileSystem
    case other => other
  }
  private val root = files.makeQualified(path)

  override def createAtomic(path: Path, overwrite: Boolean): CancellableFSDataOutputStream = {
    val target = CheckpointFiles.local(path)
    Files.createDirectories(target.getParent)
    new SyncedFile(target.resolveSibling(s".${target.getFileName}.${UUID.randomUUID}.tmp"), target, overwrite)
  }
  override def open(path: Path): FSDataInputStream = files.open(path)
  override def list(path: Path, filter: PathFilter): Array[FileStatus] = files.listStatus(path, filter)
  override def mkdirs(path: Path): Unit = Files.createDirectories(CheckpointFiles.local(path))
  override def exists(path: Path): Boolean = Files.exists(CheckpointFiles.local(path))
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

object CheckpointFiles {
  def local(path: Path): NioPath = Paths.get(path.toUri.getPath)

  def sync(path: NioPath): Unit = {
    val channel = FileChannel.open(path, StandardOpenOption.READ)
    try channel.force(true)
    finally channel.close()
  }
}

/** A file that is written under another name, then synced and renamed. */
private final class SyncedFile(unfinished: NioPath, target: NioPath, overwrite: Boolean)
    extends CancellableFSDataOutputStream(new BufferedOutputStream(Files.newOutputStream(unfinished), 1 << 16)) {
  private var ended = false

  override def close(): Unit = if (!ended) {
    ended = true
    super.close()
    CheckpointFiles.sync(unfinished)
    if (overwrite) Files.move(unfinished, target, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING)
    else
      try Files.createLink(target, unfinished)
      catch { case _: FileAlreadyExistsException => throw new org.apache.hadoop.fs.FileAlreadyExistsException(target.toString) }
      finally Files.deleteIfExists(unfinished)
    CheckpointFiles.sync(target.getParent)
  }

  override def cancel(): Unit = if (!ended) {
    ended = true
    try super.close()
    catch { case _: IOException => () }
    Files.deleteIfExists(unfinished)
  }
}
