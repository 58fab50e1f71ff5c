package penstock.kernel.engine

import java.io.OutputStream
import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.{Files, Path, Paths, StandardOpenOption}
import scala.jdk.CollectionConverters._

/** A disk that writes down what has been synced, and keeps what is removed or replaced, so that a test can tell what a power failure leaves.
  *
  * Files go by their inodes, which are not used again as long as all of them are kept. The journal in `folder` has one line each:
  *
  * {{{
  * written INODE                              its bytes may be lost
  * synced INODE                               its bytes are safe
  * folder PATH TAB NAME/INODE TAB ...         these names are safe, and no others
  * }}}
  */
class WatchedDisk(folder: Path) extends Disk {
  private val kept = Files.createDirectories(folder.resolve("kept"))
  private val journal = FileChannel.open(folder.resolve("journal"), StandardOpenOption.CREATE, StandardOpenOption.APPEND)

  override def write(path: Path): OutputStream = {
    val out = super.write(path)
    note(s"written ${inode(path)}")
    out
  }

  /** One at a time: of two listings of a folder the newer one has to be noted last; and no name may go while they are made. */
  override def sync(path: Path): Unit = synchronized {
    val safe = if (Files.isDirectory(path)) s"folder $path\t${names(path).mkString("\t")}" else s"synced ${inode(path)}"
    super.sync(path)
    note(safe)
  }

  override def rename(from: Path, to: Path): Unit = synchronized {
    keep(to)
    super.rename(from, to)
  }

  override def remove(path: Path): Unit = synchronized {
    keep(path)
    super.remove(path)
  }

  private def keep(path: Path): Unit = if (Files.isRegularFile(path)) {
    val copy = kept.resolve(inode(path))
    if (!Files.exists(copy)) Files.createLink(copy, path)
  }

  private def names(folder: Path): Seq[String] = {
    val all = Files.list(folder)
    try all.iterator.asScala.map(path => s"${path.getFileName}/${inode(path)}").toSeq
    finally all.close()
  }

  private def inode(path: Path): String = Files.getAttribute(path, "unix:ino").toString

  private def note(line: String): Unit = synchronized {
    val bytes = ByteBuffer.wrap(s"$line\n".getBytes("UTF-8"))
    while (bytes.hasRemaining) journal.write(bytes)
  }
}

/** The file system over such a disk, whose journal lies where the property `penstock.watched` says. */
class WatchedFiles extends LocalFiles(WatchedFiles.disk)

object WatchedFiles {
  private lazy val disk = new WatchedDisk(Paths.get(System.getProperty("penstock.watched")))
}
