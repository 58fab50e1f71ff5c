package penstock.kernel.source

import java.util.Arrays

import org.apache.spark.sql.types.TimestampType
import org.apache.spark.sql.vectorized.ColumnVector
import penstock.kernel.arrow.{Made, ReadVector}
import penstock.kernel.engine.Watermarks
import penstock.kernel.log.{Log, Place, Steps}

import scala.collection.mutable.ArrayBuffer

/** The watermark that stands before each frame of a range: a step function.
  *
  * @param frames ascending; from `frames(i)` on, `values(i)` stands (`Steps.None`: none yet)
  */
final class Stamps(frames: Array[Long], values: Array[Long]) extends Serializable {

  def at(frame: Long): Long = {
    val index = indexOf(frame)
    if (index < 0) Steps.None else values(index)
  }

  /** For operators: see `Watermarks`. */
  def bytes: Array[Byte] = Watermarks.bytes(frames, values)

  /** The part that frames in `[from, until)` need. */
  def within(from: Long, until: Long): Stamps = {
    val low = math.max(indexOf(from), 0)
    val high = math.max(indexOf(until - 1) + 1, low)
    new Stamps(Arrays.copyOfRange(frames, low, high), Arrays.copyOfRange(values, low, high))
  }

  /** The stamps of records whose places are given. Places rise with the rows, and so does the step looked at. */
  def column(places: ColumnVector): ColumnVector = new ReadVector(TimestampType) {
    private var index = -1

    override def hasNull: Boolean = true
    override def numNulls: Int = Int.MaxValue
    override def isNullAt(row: Int): Boolean = getLong(row) == Steps.None

    override def getLong(row: Int): Long = {
      val frame = places.getLong(row) >> Place.IndexBits
      if (index >= 0 && frames(index) > frame) index = indexOf(frame)
      while (index + 1 < frames.length && frames(index + 1) <= frame) index += 1
      if (index < 0) Steps.None else values(index)
    }
  }

  def constant(frame: Long): ColumnVector =
    if (at(frame) == Steps.None) new Made.Null(TimestampType) else new Made.ConstantLong(TimestampType, at(frame))

  private def indexOf(frame: Long): Int = {
    val found = Arrays.binarySearch(frames, frame)
    if (found >= 0) found else -found - 2
  }
}

object Stamps {
  val none = new Stamps(Array.empty, Array.empty)

  /** The watermark of a topic before a frame, which may be the one after the last. */
  def before(log: Log, options: ReadOptions, frame: Long): Long = log.synchronized {
    log.in(frame - 1, frame).toSeq.lastOption.fold(Steps.None) { case (stretch, _) =>
      log.scanned(stretch).trackOf(options.topic).levels(options.by, options.delay, options.scope).before(frame)
    }
  }

  /** The stamps of a topic's records in frames `[from, until)`. */
  def of(log: Log, options: ReadOptions, from: Long, until: Long): Stamps = log.synchronized {
    val frames = ArrayBuffer.empty[Long]
    val values = ArrayBuffer.empty[Long]
    def stand(frame: Long, value: Long): Unit =
      if (value > values.lastOption.getOrElse(Steps.None)) { frames += frame; values += value }
    log.in(from, until).foreach { case (stretch, _) =>
      val levels = log.scanned(stretch).trackOf(options.topic).levels(options.by, options.delay, options.scope)
      val begin = math.max(from, stretch.first)
      stand(begin, levels.before(begin))
      levels.raisedIn(begin, until).foreach(frame => stand(frame + 1, levels.before(frame + 1)))
    }
    new Stamps(frames.toArray, values.toArray)
  }
}
