package penstock.kernel.engine

import java.io.OutputStream
import java.nio.channels.FileChannel
import java.nio.file.{Files, Path, StandardCopyOption, StandardOpenOption}

/** What is done to this machine's disk for a checkpoint, by java.nio: no child processes.
  *
  * What a file holds survives a power failure once the file is synced; which names a folder has, once the folder is.
  */
class Disk {
  /** A new file, or one that is there made empty. */
  def write(path: Path): OutputStream = Files.newOutputStream(path)

  /** A file or a folder. */
  def sync(path: Path): Unit = {
    val channel = FileChannel.open(path, StandardOpenOption.READ)
    try channel.force(true)
    finally channel.close()
  }

  def makeFolder(path: Path): Unit = Files.createDirectory(path)

  /** In one step, in place of what has the name now. */
  def rename(from: Path, to: Path): Unit =
    Files.move(from, to, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING)

  /** Gives a file one more name; fails if that is taken. */
  def link(from: Path, to: Path): Unit = Files.createLink(to, from)

  /** A file or an empty folder, if it is there. */
  def remove(path: Path): Unit = Files.deleteIfExists(path)
}
