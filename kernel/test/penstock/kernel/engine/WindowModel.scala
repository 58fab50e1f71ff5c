package penstock.kernel.engine

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.CalendarInterval

/** A row of the windows that are checked: `by` is what the window orders by, the others decide between its ties. */
final case class Item(by: Option[Int], t: Int, v: Option[Long], d: Option[Double]) {
  def values(kind: ByKind): Seq[Any] = Seq(by.map(kind.value).orNull, t, v.map(_.asInstanceOf[AnyRef]).orNull, d.map(_.asInstanceOf[AnyRef]).orNull)
}

object Item {
  val T: AttributeReference = AttributeReference("t", IntegerType, nullable = false)()
  val V: AttributeReference = AttributeReference("v", LongType)()
  val D: AttributeReference = AttributeReference("d", DoubleType)()
}

/** What stands for the number by which a row is ordered, and for a distance between such numbers. */
final case class ByKind(of: DataType, value: Int => Any, offset: Int => Expression) {
  val column: AttributeReference = AttributeReference("by", of)()
  val columns: Seq[AttributeReference] = Seq(column, Item.T, Item.V, Item.D)
}

object ByKind {
  private val Hour = 3_600_000_000L
  val Number: ByKind = ByKind(IntegerType, n => n, n => Literal(n))
  val All: Seq[ByKind] = Seq(
    Number,
    ByKind(DoubleType, n => n / 4.0, n => Literal(n / 4.0)),
    ByKind(DecimalType(4, 1), n => Decimal(n, 4, 1), n => Literal(Decimal(n, 4, 1), DecimalType(4, 1))),
    ByKind(DateType, n => 18_000 + n, n => Literal(n)),
    ByKind(DateType, n => 18_000 + n, n => Literal(n * 24 * Hour, DayTimeIntervalType(DayTimeIntervalType.DAY, DayTimeIntervalType.DAY))),
    ByKind(DateType, n => DateTimeUtils.localDateToDays(java.time.LocalDate.of(2020, 1, 1).plusMonths(n)), n => Literal(n, YearMonthIntervalType())),
    ByKind(TimestampType, n => n * Hour, n => Literal(n * Hour, DayTimeIntervalType())),
    ByKind(TimestampNTZType, n => n * Hour, n => Literal(new CalendarInterval(0, 0, n * Hour), CalendarIntervalType)))
}

/** An order of windows, for Spark and for the model. */
final case class Ordered(descending: Boolean, nullsFirst: Boolean, kind: ByKind = ByKind.Number) {
  val spark: SortOrder =
    SortOrder(kind.column, if (descending) Descending else Ascending, if (nullsFirst) NullsFirst else NullsLast, Nil)

  def compare(a: Option[Long], b: Option[Long]): Int = (a, b) match {
    case (None, None) => 0
    case (None, _) => if (nullsFirst) -1 else 1
    case (_, None) => if (nullsFirst) 1 else -1
    case (Some(x), Some(y)) => if (descending) java.lang.Long.compare(y, x) else java.lang.Long.compare(x, y)
  }

  /** All rows in their order: `by`, then the other columns, each going up with NULLs first. */
  val rows: Ordering[Item] = (a: Item, b: Item) => {
    val first = compare(moved(a.by, 0), moved(b.by, 0))
    if (first != 0) first
    else Ordering.Tuple3[Int, Option[Long], Option[Double]](Ordering.Int, Ordering.Option(Ordering.Long), Ordering.Option(Ordering.Double.TotalOrdering))
      .compare((a.t, a.v, a.d), (b.t, b.v, b.d))
  }

  def peers(a: Item, b: Item): Boolean = a.by == b.by
  /** The order value `offset` further on in the order. */
  def moved(by: Option[Int], offset: Int): Option[Long] = by.map(value => if (descending) value.toLong - offset else value.toLong + offset)
}

/** A frame, for Spark and for the model; no offset: unbounded. */
final case class FrameCase(byRows: Boolean, lower: Option[Int], upper: Option[Int]) {
  def spark(kind: ByKind): SpecifiedWindowFrame = {
    def bound(offset: Option[Int], unbounded: SpecialFrameBoundary): Expression =
      offset.fold[Expression](unbounded)(each => if (each == 0) CurrentRow else if (byRows) Literal(each) else kind.offset(each))
    SpecifiedWindowFrame(if (byRows) RowFrame else RangeFrame, bound(lower, UnboundedPreceding), bound(upper, UnboundedFollowing))
  }

  /** The rows of the frame of row `i`. */
  def of(rows: IndexedSeq[Item], i: Int, order: Ordered): IndexedSeq[Item] =
    if (byRows) rows.slice(lower.fold(0)(i + _), upper.fold(rows.length)(i + _ + 1))
    else rows.filter { row =>
      lower.forall(offset => order.compare(order.moved(row.by, 0), order.moved(rows(i).by, offset)) >= 0) &&
      upper.forall(offset => order.compare(order.moved(row.by, 0), order.moved(rows(i).by, offset)) <= 0)
    }
}

object FrameCase {
  val All: Seq[FrameCase] = for {
    byRows <- Seq(true, false)
    (lower, upper) <- Seq(
      (None, None), (None, Some(0)), (None, Some(-2)), (None, Some(2)),
      (Some(0), None), (Some(-2), None), (Some(2), None),
      (Some(0), Some(0)), (Some(-2), Some(0)), (Some(-1), Some(2)), (Some(0), Some(3)), (Some(-3), Some(-1)), (Some(2), Some(3)))
  } yield FrameCase(byRows, lower, upper)
}

/** A window function, for Spark and for the model: what it gives to row `i` of a partition in its order. */
final case class FunctionCase(name: String, spark: WindowExpression, wanted: (IndexedSeq[Item], Int) => Any)

object FunctionCase {
  /** The answer of `functions` over the rows: each row with its values, and how often. */
  def answer(rows: Iterable[(Item, Long)], order: Ordered, functions: Seq[FunctionCase]): Map[Seq[Any], Long] = {
    val sorted = rows.toSeq.sortBy(_._1)(order.rows).flatMap { case (item, times) => Seq.fill(times.toInt)(item) }.toIndexedSeq
    sorted.indices.map(i => sorted(i).values(order.kind) ++ functions.map(_.wanted(sorted, i))).groupMapReduce(identity)(_ => 1L)(_ + _)
  }
}
