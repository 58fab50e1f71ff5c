package penstock.kernel.source

import penstock.kernel.log.{Member, Place}

/** The places `[from, until)`: a range of the log that may begin and end inside a frame. */
final case class Places(from: Long, until: Long) {

  def isEmpty: Boolean = from >= until

  def firstFrame: Long = from >> Place.IndexBits

  /** The frame after the last that it touches. */
  def endFrame: Long = Places.frameAfter(until)

  /** Whether it holds all of frames `[first, end)`. */
  def covers(first: Long, end: Long): Boolean = from <= (first << Place.IndexBits) && until >= (end << Place.IndexBits)

  /** The offsets of a block's records that lie in it, `[low, high)`; empty if low is not below high. */
  def offsets(member: Member): (Long, Long) = {
    val block = member.block
    val low = math.max(0L, from - member.place)
    val high = math.min(block.width.toLong, until - member.place)
    (block.base + low, block.base + high)
  }
}

object Places {

  /** Frames `[from, until)` as far as the options allow. */
  def of(from: Long, until: Long, options: ReadOptions): Places =
    Places(
      math.max(from << Place.IndexBits, options.fromPlace),
      options.untilPlace.fold(until << Place.IndexBits)(math.min(_, until << Place.IndexBits)))

  /** The first frame that begins at `place` or after it. */
  def frameAfter(place: Long): Long = (place >> Place.IndexBits) + (if ((place & (1L << Place.IndexBits) - 1) == 0) 0 else 1)
}
