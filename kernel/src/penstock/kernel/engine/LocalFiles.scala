package penstock.kernel.engine

import java.io.{File, FilterOutputStream, IOException, OutputStream}
import java.nio.file.{FileAlreadyExistsException, Files, LinkOption, Path => NioPath}
import java.nio.file.attribute.PosixFilePermissions
import java.util.Comparator
import org.apache.hadoop.fs.{LocalFileSystem, Path, RawLocalFileSystem, Syncable}
import org.apache.hadoop.fs.permission.FsPermission

/** Hadoop's file system of this machine, synced: RocksDB's snapshots are written through it, past the [[CheckpointFiles]].
  *
  * A file that was closed, a name that was given, a folder that was made survive a power failure. What was deleted may come back: whoever
  * deletes must bear that. There are no checksum files beside: snapshots and changelogs carry checksums of their own.
  */
class LocalFiles(val disk: Disk) extends LocalFileSystem(new SyncedFiles(disk)) {
  setWriteChecksum(false)
  setVerifyChecksum(false)

  def this() = this(new Disk)
}

private final class SyncedFiles(disk: Disk) extends RawLocalFileSystem {
  /** Nobody writes on what another has begun: Hadoop's local file system above this one does not let them. */
  override protected def createOutputStreamWithMode(path: Path, append: Boolean, permission: FsPermission): OutputStream = {
    if (append) throw new UnsupportedOperationException(s"$path is not written on")
    val file = nio(path)
    val out = new SyncedOutput(disk, file, disk.write(file))
    permit(path, permission)
    out
  }

  override protected def mkOneDirWithMode(path: Path, folder: File, permission: FsPermission): Boolean =
    try {
      disk.makeFolder(folder.toPath)
      permit(path, permission)
      disk.sync(folder.toPath.toAbsolutePath.getParent)
      true
    } catch { case _: FileAlreadyExistsException => false }

  /** What java.nio cannot move in one step is left to Hadoop, which copies and deletes. */
  override def rename(from: Path, to: Path): Boolean = {
    val moved =
      try {
        disk.rename(nio(from), nio(to))
        true
      } catch { case _: IOException => super.rename(from, to) }
    if (moved) Set(nio(from).getParent, nio(to).getParent).foreach(disk.sync)
    moved
  }

  override def delete(path: Path, recursive: Boolean): Boolean = {
    val root = nio(path)
    val there = Files.exists(root, LinkOption.NOFOLLOW_LINKS)
    if (there && recursive) {
      val all = Files.walk(root)
      try all.sorted(Comparator.reverseOrder[NioPath]).forEach(each => disk.remove(each))
      finally all.close()
    } else if (there) disk.remove(root)
    there
  }

  override def setPermission(path: Path, permission: FsPermission): Unit = {
    val actions = Seq(permission.getUserAction, permission.getGroupAction, permission.getOtherAction)
    Files.setPosixFilePermissions(nio(path), PosixFilePermissions.fromString(actions.map(_.SYMBOL).mkString))
  }

  private def permit(path: Path, permission: FsPermission): Unit =
    if (permission != null) setPermission(path, permission.applyUMask(FsPermission.getUMask(getConf)))

  private def nio(path: Path): NioPath = pathToFile(path).toPath
}

/** A file that is synced when it is closed, and its name with it. */
private final class SyncedOutput(disk: Disk, path: NioPath, out: OutputStream) extends FilterOutputStream(out) with Syncable {
  private var closed = false

  override def write(bytes: Array[Byte], start: Int, length: Int): Unit = out.write(bytes, start, length)
  override def hflush(): Unit = flush()
  override def hsync(): Unit = {
    flush()
    disk.sync(path)
  }
  override def close(): Unit = if (!closed) {
    closed = true
    out.close()
    disk.sync(path)
    disk.sync(path.toAbsolutePath.getParent)
  }
}
