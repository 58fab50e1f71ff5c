package penstock.kernel.engine

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import penstock.kernel.engine.Item.{D, T, V}

/** Every window function, beside a plain computation of its value. */
final class WindowCases(order: Ordered) {
  private type InFrame = IndexedSeq[Item] => Any
  private def orNull(value: Option[Any]): Any = value.orNull

  private def spec(frame: SpecifiedWindowFrame): WindowSpecDefinition = WindowSpecDefinition(Nil, Seq(order.spark), frame)
  private def aggregate(name: String, function: AggregateFunction, frame: FrameCase, filter: Option[Expression] = None)(wanted: InFrame): FunctionCase =
    FunctionCase(s"$name $frame", WindowExpression(AggregateExpression(function, Complete, isDistinct = false, filter), spec(frame.spark(order.kind))),
      (rows, i) => wanted(frame.of(rows, i, order)))

  /** Aggregates, by name: each over a frame. */
  val aggregates: Seq[(String, FrameCase => FunctionCase)] = Seq(
    "count" -> (f => aggregate("count", Count(Seq(V)), f)(_.count(_.v.isDefined).toLong)),
    "count of some" -> (f => aggregate("count of some", Count(Seq(Literal(1))), f, Some(GreaterThan(T, Literal(1))))(_.count(_.t > 1).toLong)),
    "sum" -> (f => aggregate("sum", Sum(V), f)(rows => orNull(rows.flatMap(_.v).reduceOption(_ + _)))),
    "exact sum" -> (f => aggregate("exact sum", Sum(D), f)(rows => orNull(rows.flatMap(_.d).map(new java.math.BigDecimal(_)).reduceOption(_ add _).map(_.doubleValue)))),
    "decimal sum" -> (f => aggregate("decimal sum", Sum(Cast(V, DecimalType(12, 2))), f)(rows => orNull(rows.flatMap(_.v).reduceOption(_ + _).map(Decimal(_))))),
    "avg" -> (f => aggregate("avg", Average(V), f)(rows => orNull(mean(rows.flatMap(_.v))))),
    "min" -> (f => aggregate("min", Min(V), f)(rows => orNull(rows.flatMap(_.v).minOption))),
    "max" -> (f => aggregate("max", Max(D), f)(rows => orNull(rows.flatMap(_.d).maxOption(Ordering.Double.TotalOrdering)))),
    "first" -> (f => aggregate("first", First(V, ignoreNulls = false), f)(rows => orNull(rows.headOption.flatMap(_.v)))),
    "first not null" -> (f => aggregate("first not null", First(V, ignoreNulls = true), f)(rows => orNull(rows.flatMap(_.v).headOption))),
    "last" -> (f => aggregate("last", Last(V, ignoreNulls = false), f)(rows => orNull(rows.lastOption.flatMap(_.v)))),
    "last not null" -> (f => aggregate("last not null", Last(V, ignoreNulls = true), f)(rows => orNull(rows.flatMap(_.v).lastOption))),
    "list" -> (f => aggregate("list", CollectList(V), f)(rows => rows.flatMap(_.v))),
    "set" -> (f => aggregate("set", CollectSet(T), f)(rows => rows.map(_.t).distinct.sorted)),
    "bits" -> (f => aggregate("bits", BitXorAgg(V), f)(rows => orNull(rows.flatMap(_.v).reduceOption(_ ^ _)))),
    "deviation" -> (f => aggregate("deviation", StddevPop(Cast(V, DoubleType)), f)(rows => orNull(deviation(rows.flatMap(_.v).map(_.toDouble))))),
    "median" -> (f => aggregate("median", new Percentile(V, Literal(0.5)), f)(rows => orNull(median(rows.flatMap(_.v))))),
    "weighted" -> (f => aggregate("weighted", new Percentile(V, Literal(1.0), Cast(T, LongType)), f)(rows => orNull(rows.filter(_.t > 0).flatMap(_.v).maxOption.map(_.toDouble)))),
    "mode" -> (f => aggregate("mode", new Mode(V, true), f)(rows => orNull(mode(rows.flatMap(_.v))))),
    "texts" -> (f => aggregate("texts", ListAgg(Cast(V, StringType), Literal(",")), f)(rows => texts(rows.flatMap(_.v)))),
    "estimate" -> (f => aggregate("estimate", HyperLogLogPlusPlus(V), f)(rows => estimate(rows.map(_.v)))),
    "nth" -> (f => nth(2, ignoreNulls = false, f)),
    "nth not null" -> (f => nth(3, ignoreNulls = true, f)))

  private def nth(n: Int, ignoreNulls: Boolean, frame: FrameCase): FunctionCase =
    FunctionCase(s"nth $n $frame", WindowExpression(NthValue(V, Literal(n), ignoreNulls), spec(frame.spark(order.kind))), (rows, i) => {
      val values = frame.of(rows, i, order).map(_.v).filter(v => !ignoreNulls || v.isDefined)
      orNull(values.lift(n - 1).flatten)
    })

  /** The least of those that are there most often. */
  private def mode(values: Seq[Long]): Option[Long] = values.distinct.sorted.maxByOption(value => values.count(_ == value))
  private def texts(values: Seq[Long]): Any = if (values.isEmpty) null else UTF8String.fromString(values.mkString(","))
  private def mean(values: Seq[Long]): Option[Double] = if (values.isEmpty) None else Some(values.sum.toDouble / values.length)
  private def median(values: Seq[Long]): Option[Double] = if (values.isEmpty) None else {
    val sorted = values.sorted
    Some((sorted((sorted.length - 1) / 2) + sorted(sorted.length / 2)) / 2.0)
  }
  /** As Spark updates it, row by row: floating numbers are equal to the last bit only on the same way. */
  private def deviation(values: Seq[Double]): Option[Double] = if (values.isEmpty) None else {
    val (n, _, squares) = values.foldLeft((0.0, 0.0, 0.0)) { case ((n, mean, squares), x) =>
      val delta = x - mean
      val step = delta / (n + 1)
      (n + 1, mean + step, squares + delta * (delta - step))
    }
    Some(math.sqrt(squares / n))
  }
  private def estimate(values: Seq[Option[Long]]): Any = {
    val function = HyperLogLogPlusPlus(BoundReference(0, LongType, nullable = true))
    val buffer = new SpecificInternalRow(function.aggBufferSchema.map(_.dataType))
    function.initialize(buffer)
    values.foreach(value => function.update(buffer, InternalRow(value.map(_.asInstanceOf[AnyRef]).orNull)))
    function.eval(buffer)
  }

  private def numbered(name: String, function: AggregateWindowFunction)(wanted: (IndexedSeq[Item], Int) => Any): FunctionCase =
    FunctionCase(name, WindowExpression(function, spec(function.frame.asInstanceOf[SpecifiedWindowFrame])), wanted)
  private def before(rows: IndexedSeq[Item], i: Int): Int = rows.indexWhere(order.peers(_, rows(i)))

  val numbers: Seq[FunctionCase] = Seq(
    numbered("row_number", RowNumber())((_, i) => i + 1),
    numbered("rank", Rank(Seq(order.kind.column)))((rows, i) => before(rows, i) + 1),
    numbered("dense_rank", DenseRank(Seq(order.kind.column)))((rows, i) => rows.take(i + 1).map(_.by).distinct.length),
    numbered("percent_rank", PercentRank(Seq(order.kind.column)))((rows, i) => if (rows.length == 1) 0.0 else before(rows, i).toDouble / (rows.length - 1)),
    numbered("cume_dist", CumeDist())((rows, i) => (rows.lastIndexWhere(order.peers(_, rows(i))) + 1).toDouble / rows.length),
    tile(1), tile(3), tile(50))

  private def tile(buckets: Int): FunctionCase = numbered(s"ntile $buckets", NTile(Literal(buckets))) { (rows, i) =>
    val sizes = (0 until buckets).map(b => rows.length / buckets + (if (b < rows.length % buckets) 1 else 0))
    sizes.scanLeft(0)(_ + _).lastIndexWhere(_ <= i, end = buckets - 1) + 1
  }

  def shifted(function: FrameLessOffsetWindowFunction, offset: Int): FunctionCase =
    FunctionCase(function.toString, WindowExpression(function, spec(function.frame.asInstanceOf[SpecifiedWindowFrame])), (rows, i) => {
      val skips = function.ignoreNulls && offset != 0
      val way = if (offset < 0) rows.take(i).reverse else if (offset > 0) rows.drop(i + 1) else rows.drop(i)
      val found = way.filter(row => !skips || row.v.isDefined).lift(math.max(math.abs(offset) - 1, 0))
      found.fold[Any](if (function.default.foldable) function.default.eval() else rows(i).t.toLong)(row => orNull(row.v))
    })

  val shifts: Seq[FunctionCase] = for {
    offset <- Seq(-3, -1, 0, 1, 2)
    ignoreNulls <- Seq(false, true)
    default <- if (math.abs(offset) == 1) Seq(Literal(-1L), Cast(T, LongType)) else Seq(Literal.create(null, LongType))
    function <- Seq(Lead(V, Literal(offset), default, ignoreNulls), Lag(V, Literal(-offset), default, ignoreNulls))
  } yield shifted(function, offset)
}
