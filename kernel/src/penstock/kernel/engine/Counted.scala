package penstock.kernel.engine

/** What of the rows before a row says whether it is among the first: how many they are, of them those that are no peers of its, or how many
  * groups of peers they are. As `row_number`, `rank` and `dense_rank` do.
  */
sealed trait Counted extends Serializable

object Counted {
  case object Rows extends Counted
  case object Ranks extends Counted
  case object Groups extends Counted
}

/** Goes through rows in their order, and takes those that are among the first `needed`. */
final class Taking(counted: Counted, order: RowOrder, needed: Long) {
  /** The copies that were taken. */
  var rows = 0L
  /** The last row that was taken. */
  var last: Array[Byte] = _
  /** Whether it may go on: not after a row that was not taken. */
  var open: Boolean = needed > 0
  private var groups = 0L

  /** Whether nothing is taken any more, but for peers of the last row. */
  def full: Boolean = needed == 0 || last != null && (if (counted == Counted.Groups) groups else rows) >= needed

  /** How many of its copies are taken. */
  def take(row: Array[Byte], copies: Long): Long = {
    val taken = if (!open) 0 else if (counted == Counted.Rows) math.min(copies, needed - rows) else if (belongs(row)) copies else 0
    if (taken > 0) {
      rows += taken
      last = row
    }
    open = taken > 0 && !(counted == Counted.Rows && full)
    taken
  }

  private def belongs(row: Array[Byte]): Boolean =
    if (last != null && order.compare(row, order.peers(last, RowOrder.After)) < 0) true
    else if (full) false
    else {
      groups += 1
      true
    }
}
