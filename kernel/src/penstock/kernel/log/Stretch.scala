package penstock.kernel.log

import java.lang.ref.SoftReference
import java.nio.file.{Files, NoSuchFileException, Path}

/** One stretch of the log: a file of frames in the journal, or the folder that it was sealed into.
  *
  * State: whether it is sealed, its prelude, and what its frames say. An open stretch is looked at incrementally; what a closed
  * one says is kept as long as memory allows. Used under the lock of its `Log`.
  */
final class Stretch(folder: Path, val first: Long, before: Stretch) {
  private val name = f"$first%020d"
  private var sealedAway = false
  private var prelude: Prelude = _
  private var listed: Array[SealedFile] = _
  private var file: ReadFile = _
  private var scan: FrameScan = _
  private var growing: Scanned = _
  private var whole: SoftReference[Scanned] = _

  val journal: Path = folder.resolve("journal").resolve(s"$name.journal")
  val sealedFolder: Path = folder.resolve("sealed").resolve(name)

  /** Whether its records lie in sealed files. Sealing happens beside us: a closed stretch is looked for each time. */
  def isSealed: Boolean = {
    if (!sealedAway && Files.exists(headers)) {
      sealedAway = true
      prelude = null
      listed = null
      forget()
    }
    sealedAway
  }

  /** Where its records lie: as its prelude says, or the list that has replaced that. */
  def files: Array[SealedFile] = {
    if (listed == null) listed = SealedFiles.in(sealedFolder).getOrElse(loaded.files)
    listed
  }

  /** Its files may have been rewritten since they were looked at. */
  def listAgain(): Unit = listed = null

  /** The next offset of each partition of a topic when the stretch began; none if its prelude cannot be read. */
  def ends(topic: String): Array[Long] =
    try loaded.topics.get(topic).fold(Array.empty[Long])(_.ends)
    catch { case _: DamagedLog => Array.empty }

  /** What the frames of an open stretch say, up to byte `limit`. */
  def upTo(limit: Long): Scanned = {
    // An older copy of the log may have been put in its place.
    if (growing != null && scan.seen > limit) close()
    if (growing == null) begin(new ReadFile(journal))
    scan.advance(limit)(growing.add)
    growing
  }

  /** Whether the last frames of an open stretch cannot be read. */
  def isTorn: Boolean = scan != null && scan.isTorn

  /** Gives back the file of an open stretch. */
  def close(): Unit = {
    if (file != null) file.close()
    forget()
  }

  /** What all its frames say; it must be closed. */
  def closed: Scanned = {
    val kept = if (whole == null) null else whole.get
    if (kept != null) return kept
    if (isSealed || growing == null) begin(opened)
    val used = file
    try scan.advance(used.size)(growing.add)
    catch { case _: NoSuchFileException if isSealed => return closed }
    finally used.close()
    val found = growing
    whole = new SoftReference(found)
    forget()
    found
  }

  private def begin(opened: ReadFile): Unit = {
    file = opened
    prelude = Prelude.of(file).getOrElse(rebuilt(file))
    growing = new Scanned(prelude.topics, first)
    scan = new FrameScan(file, prelude.end, first)
  }

  private def forget(): Unit = {
    growing = null
    scan = null
    file = null
  }

  private def loaded: Prelude = {
    if (prelude == null) {
      val file = opened
      try prelude = Prelude.of(file).getOrElse(rebuilt(file))
      finally file.close()
    }
    prelude
  }

  /** What a damaged prelude said follows from the stretch before; the frames after it are found by their marks. */
  private def rebuilt(file: ReadFile): Prelude = {
    if (sealedAway) throw new DamagedLog(s"the prelude of ${file.path} is damaged", "", "Restore the file from a copy.")
    val topics = if (before == null) Map.empty[String, Standing] else before.closed.standing
    Prelude("", topics, Array.empty, new FrameBytes(file).nextFront(Prelude.Front, file.size, first - 1))
  }

  private def opened: ReadFile =
    if (isSealed) new ReadFile(headers)
    else
      try new ReadFile(journal)
      catch {
        case _: NoSuchFileException if isSealed => new ReadFile(headers)
        case _: NoSuchFileException => throw new LogError(s"the frames from $first on are gone", s"There is neither $headers nor $journal.")
      }

  private def headers: Path = sealedFolder.resolve("headers.journal")
}

object Stretch {

  /** How the names of stretches begin: what is called otherwise is none. */
  val Number = "[0-9]{20}"
}
