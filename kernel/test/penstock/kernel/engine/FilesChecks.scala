package penstock.kernel.engine

import java.io.IOException
import java.net.URI
import java.nio.file.{Files, Path => NioPath, Paths}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}
import org.apache.hadoop.fs.permission.FsPermission
import penstock.kernel.Checks
import penstock.kernel.Checks.{equal, holds}
import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

/** Checkpoint files and the file system beneath: what they do to the disk, in which order. */
object FilesChecks {
  /** Remembers what was done, by the names of files. */
  private final class Told extends Disk {
    val steps = ArrayBuffer.empty[String]
    override def write(path: NioPath) = {
      steps += s"write ${short(path)}"
      super.write(path)
    }
    override def sync(path: NioPath): Unit = {
      steps += s"sync ${short(path)}"
      super.sync(path)
    }
    override def makeFolder(path: NioPath): Unit = {
      super.makeFolder(path)
      steps += s"make ${short(path)}"
    }
    override def rename(from: NioPath, to: NioPath): Unit = {
      super.rename(from, to)
      steps += s"rename ${short(from)} ${short(to)}"
    }
    override def link(from: NioPath, to: NioPath): Unit = {
      super.link(from, to)
      steps += s"link ${short(from)} ${short(to)}"
    }
    override def remove(path: NioPath): Unit = {
      steps += s"remove ${short(path)}"
      super.remove(path)
    }
    private def short(path: NioPath): String = path.getFileName.toString.replaceAll("-.*", "").replaceAll("[.][0-9a-f]{8}$", "")
  }

  private val scratch = Files.createTempDirectory("files")

  private final class Place {
    val told = new Told
    val root: NioPath = Files.createDirectory(Files.createTempDirectory(scratch, "place").resolve("root"))
    val files = new LocalFiles(told)
    files.initialize(URI.create("file:///"), new Configuration(false))

    def path(name: String): Path = new Path(root.resolve(name).toUri)
    def write(name: String, text: String): Unit = {
      val out = files.create(path(name))
      out.write(text.getBytes)
      out.close()
    }
    def text(name: String): String = Files.readString(root.resolve(name))
    def names: Set[String] = {
      val all = Files.list(root)
      try all.iterator.asScala.map(_.getFileName.toString).toSet
      finally all.close()
    }
  }

  /** A manager over the place's file system, which is found by its configuration only. */
  private def manager(place: Place): CheckpointFiles = {
    val configuration = new Configuration(false)
    configuration.set("fs.file.impl", classOf[LocalFiles].getName)
    configuration.set("fs.file.impl.disable.cache", "true")
    new CheckpointFiles(place.path(""), configuration)
  }

  def main(args: Array[String]): Unit = {
    val checks = new Checks(args)
    import checks.check

    check("a sync reaches the system: of what cannot be synced it says so") {
      val refused =
        try { new Disk().sync(Paths.get("/dev/null")); false }
        catch { case _: IOException => true }
      holds(refused, "/dev/null was synced")
    }
    check("a file is synced when it is closed, then its name; it has no checksum file") {
      val place = new Place
      place.write("a", "text")
      equal(place.told.steps.toList, List("write a", "sync a", "sync root"), "steps")
      equal((place.text("a"), place.names), ("text", Set("a")), "what is there")
    }
    check("closing twice syncs once") {
      val place = new Place
      val out = place.files.create(place.path("a"))
      out.close()
      out.close()
      equal(place.told.steps.count(_ == "sync a"), 1, "syncs")
    }
    check("what is flushed to the disk before the end is there") {
      val place = new Place
      val out = place.files.create(place.path("a"))
      out.write("text".getBytes)
      out.hsync()
      equal((place.told.steps.last, place.text("a")), ("sync a", "text"), "after hsync")
      out.close()
    }
    check("each new folder is synced into the one above") {
      val place = new Place
      holds(place.files.mkdirs(place.path("a/b/c")), "made")
      equal(place.told.steps.toList, List("make a", "sync root", "make b", "sync a", "make c", "sync b"), "steps")
      holds(place.files.mkdirs(place.path("a/b/c")), "there already")
    }
    check("a file gets its folders") {
      val place = new Place
      place.write("a/b", "text")
      equal(place.told.steps.toList, List("make a", "sync root", "write b", "sync b", "sync a"), "steps")
    }
    check("a rename is synced at both ends and replaces what was there") {
      val place = new Place
      place.write("x/a", "new")
      place.write("b", "old")
      place.told.steps.clear()
      holds(place.files.rename(place.path("x/a"), place.path("b")), "renamed")
      equal(place.told.steps.toSet, Set("rename a b", "sync x", "sync root"), "steps")
      equal(place.text("b"), "new", "content")
    }
    check("folders are deleted with what is in them; what is not there is no error") {
      val place = new Place
      place.write("a/b/c", "text")
      holds(place.files.delete(place.path("a"), true), "deleted")
      holds(!place.files.delete(place.path("a"), true), "not there")
      equal(place.names, Set.empty, "what is left")
    }
    check("permissions are set without a child process") {
      val place = new Place
      place.write("a", "text")
      place.files.setPermission(place.path("a"), new FsPermission("640"))
      equal(Files.getPosixFilePermissions(place.root.resolve("a")).size, 3, "permissions")
    }
    check("a checkpoint's file appears whole, and its name is synced after it") {
      val place = new Place
      val manager = new CheckpointFiles(place.files, place.path(""))
      val out = manager.createAtomic(place.path("0"), false)
      out.write("text".getBytes)
      equal(place.names.filterNot(_.startsWith(".")), Set.empty, "before it is closed")
      out.close()
      equal(place.told.steps.toList, List("write .0", "sync .0", "link .0 0", "remove .0", "sync root"), "steps")
      equal((place.text("0"), place.names), ("text", Set("0")), "what is there")
    }
    check("a checkpoint's file that is there is not replaced unless one says so") {
      val place = new Place
      def write(text: String, overwrite: Boolean): Unit = {
        val out = manager(place).createAtomic(place.path("0"), overwrite)
        out.write(text.getBytes)
        out.close()
      }
      write("one", overwrite = false)
      val refused =
        try { write("two", overwrite = false); false }
        catch { case _: FileAlreadyExistsException => true }
      holds(refused, "written twice")
      equal((place.text("0"), place.names), ("one", Set("0")), "after the refusal")
      write("three", overwrite = true)
      equal((place.text("0"), place.names), ("three", Set("0")), "after the replacement")
    }
    check("a checkpoint's file that is cancelled was never there") {
      val place = new Place
      val out = manager(place).createAtomic(place.path("0"), true)
      out.write("text".getBytes)
      out.cancel()
      out.close()
      equal(place.names, Set.empty, "what is there")
    }
    check("a lock is taken once and kept") {
      val place = new Place
      val file = place.root.resolve("lock").toString
      holds(Held.take(file, "here") && Held.take(file, "here"), "taken")
      equal(place.text("lock"), s"${ProcessHandle.current.pid} on here", "the holder")
    }
    new Place().files.delete(new Path(scratch.toUri), true)
    checks.close()
  }
}
