package penstock.kernel.engine

import org.apache.spark.sql.catalyst.InternalRow
import penstock.kernel.state.{Cursor, State}

/** How the rows of one side of a join are kept. */
sealed abstract class JoinSide {
  /** Takes a change into the rows; `matches` is how many partners it has, -1 where they are not counted. */
  def take(state: State, envelope: Array[Byte], matches: Long): Unit
  /** The rows that may match a row of the other side. */
  def partners(state: State, other: InternalRow): Cursor
}

/** Nobody sees the rows of this side. */
object NoSide extends JoinSide {
  override def take(state: State, envelope: Array[Byte], matches: Long): Unit = ()
  override def partners(state: State, other: InternalRow): Cursor = Cursor.Empty
}

/** In no order: rows are added without a look at those that are there. */
final class PiledSide(place: Int) extends JoinSide {
  override def take(state: State, envelope: Array[Byte], matches: Long): Unit = {
    val weight = Envelope.weight(envelope)
    state.pile(place).add(Envelope.row(envelope), Tally.of(weight, Envelope.stamp(envelope), Envelope.place(envelope)), weight)
  }
  override def partners(state: State, other: InternalRow): Cursor = state.pile(place).walk
}

/** In order: a range is found without a look at the rows before it, and the number of a row's partners can be replaced. */
final class OrderedSide(place: Int, bounds: Bounds) extends JoinSide {
  override def take(state: State, envelope: Array[Byte], matches: Long): Unit = Tally.count(state.entries(place), envelope, matches)
  override def partners(state: State, other: InternalRow): Cursor =
    if (bounds == null) state.entries(place).ascending else bounds.rows(other, state.entries(place))
}
