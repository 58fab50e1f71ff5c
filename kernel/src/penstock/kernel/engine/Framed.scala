package penstock.kernel.engine

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.types.DataType

/** Where a frame begins or ends, seen from the row that it belongs to. */
sealed abstract class Bound extends Serializable

object Bound {
  /** The partition's end. */
  case object Unbounded extends Bound
  /** So many rows further on in the order; negative: back; 0: the row itself. */
  case class Rows(offset: Long) extends Bound
  /** The row's peers, and they belong to the frame. */
  case object Peers extends Bound
  /** The row's peers, and they do not belong to the frame. Only as its end. */
  case object BeforePeers extends Bound
  /** The rows whose order value is `value`, an expression over the row that grows with the row's own order value.
    *
    * `following` says on which side of the row it must lie: one that lies on the other has overflowed and bounds nothing.
    */
  case class Value(value: Expression, following: Boolean) extends Bound
}

/** Functions of a window that have the same frame: what they read of a row, how that is gathered over the frame, and the columns
  * that the folds fill.
  *
  * `arguments` are bound to the row; the gathering's folds have no collections. Both bounds are by rows, or neither is.
  */
final case class Framed(lower: Bound, upper: Bound, arguments: Seq[Expression], gathering: Gathering, columns: Seq[DataType]) {
  require(gathering.folds.forall(_.fold.collections.isEmpty), "a fold with collections cannot gather a frame")
}
