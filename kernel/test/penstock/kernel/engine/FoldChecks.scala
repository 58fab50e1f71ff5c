package penstock.kernel.engine

import java.math.{BigDecimal => JavaDecimal, MathContext, RoundingMode}
import java.util.Random

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateFunction, Average, BitAndAgg, BitOrAgg, BitXorAgg, CollectList, CollectSet,
  Count, First, HyperLogLogPlusPlus, Last, Max, Min, Percentile, Sum}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate => LogicalAggregate, LocalRelation}
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.penstock.{AggregatePlan, Door}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import penstock.kernel.Checks
import penstock.kernel.Checks.equal
import scala.collection.mutable.ArrayBuffer

/** A function of an aggregate, and its answer over the group's values that are not NULL, in the order of their places. */
final case class Asked(function: Attribute => AggregateFunction, answer: Seq[Any] => Any)

/** Values of one type, and what is asked of them. */
final case class Kind(name: String, of: DataType, value: Random => Any, asked: Seq[Asked])

/** An aggregate over the columns group and value, as the planner makes it. */
final class Aggregated(kind: Kind, growing: Boolean, grouped: Boolean = true) {
  private val group = AttributeReference("group", LongType)()
  private val value = AttributeReference("value", kind.of)()
  private val functions = kind.asked.map(asked => Alias(asked.function(value).toAggregateExpression(), "answer")())
  private val node = LogicalAggregate(if (grouped) Seq(group) else Nil, if (grouped) group +: functions else functions, LocalRelation(group, value))
  val plan = new AggregatePlan(node, growing)
  val answer = new Columns(node.output.map(_.dataType))
  val input = new Columns(Seq(LongType, kind.of))
  private def bound(e: Expression): Expression = BindReferences.bindReference(e, AttributeSeq(Seq(group, value)))
  val edge: Edge = Edge(Target(1, 0, 1), None, plan.keys.map(bound), plan.inputs.map(bound))
  val operator: Operator =
    Aggregate(1, plan.keyWidth, plan.gathering, plan.buffer, plan.result, plan.ordered, Seq(Edge(FoldChecks.Out, None, Nil, answer.all)))

  /** The group's row of the answer. */
  def wanted(of: Any, values: Seq[Any]): Seq[Any] = {
    val answers = kind.asked.map(_.answer(values.filter(_ != null)))
    if (grouped) of +: answers else answers
  }
}

/** Every fold, under rows that come and leave in any order, against the plain list of the group's values. */
object FoldChecks {
  val Out: Target = Target(100, 0, 100)

  def run(checks: Checks): Unit = {
    SQLConf.get.setConf(SQLConf.ANSI_ENABLED, false)
    Kinds.All.foreach { kind =>
      checks.seeded(s"aggregates of ${kind.name} where rows come and leave", 4)(aggregates(kind, _, growing = false))
      checks.seeded(s"aggregates of ${kind.name} where rows only come", 3)(aggregates(kind, _, growing = true))
    }
    checks.seeded("aggregates that follow the order of rows, where rows only come", 6)(aggregates(Kinds.Ordered, _, growing = true))
    checks.seeded("an aggregate without groups has an answer before any row comes, and after all have left", 6)(withoutGroups)
  }

  private def aggregates(kind: Kind, random: Random, growing: Boolean): Unit = {
    val aggregate = new Aggregated(kind, growing)
    val levels = new Levels(Seq(Seq(Chain(1, Seq(aggregate.operator)))), random)
    val groups = new Groups(kind, random, growing)
    val found = new Tallies
    val arriving = new Route(aggregate.edge)
    (1 to 10).foreach { _ =>
      val changes = groups.changes(random.nextInt(30), (row, weight, place) => arriving.envelope(aggregate.input.row(row), weight, 0, place))
      found.take(levels.batch(changes))
      found.same(Out.operator, aggregate.answer, groups.held.collect { case (g, values) if values.nonEmpty => aggregate.wanted(g, values.toSeq) }, kind.name)
      if (random.nextInt(3) == 0) levels.restart()
    }
  }

  private def withoutGroups(random: Random): Unit = {
    val kind = Kinds.All.head
    val aggregate = new Aggregated(kind, growing = false, grouped = false)
    val levels = new Levels(Seq(Seq(Chain(1, Seq(aggregate.operator)))), random)
    val groups = new Groups(kind, random, growing = false)
    val found = new Tallies
    val arriving = new Route(aggregate.edge)
    val tick = Envelope.stamped(Envelope.of(Target(1, 0, 1), Envelope.Tick, FeedIterator.Nothing, FeedIterator.Nothing), 0, Long.MinValue, Long.MinValue)
    (0 to 8).foreach { batch =>
      val changes = groups.changes(batch, (row, weight, place) => arriving.envelope(aggregate.input.row(row), weight, 0, place), only = 0L)
      found.take(levels.batch(tick +: (if (batch < 8) changes else changes ++ groups.emptied(0L).map { case (value, place) => arriving.envelope(aggregate.input.row(Seq(0L, value)), -1, 0, place) })))
      found.same(Out.operator, aggregate.answer, Seq(aggregate.wanted(null, groups.held.getOrElse(0L, Nil).toSeq)), s"batch $batch")
    }
  }
}

/** Groups of values that come and leave. A value that leaves is the oldest that equals it. */
final class Groups(kind: Kind, random: Random, growing: Boolean) {
  val held = scala.collection.mutable.Map.empty[Any, ArrayBuffer[Any]]
  private var place = 0L

  def changes(count: Int, envelope: (Seq[Any], Long, Long) => Array[Byte], only: Any = null): Seq[Array[Byte]] = Seq.fill(count) {
    val group = if (only != null) only else random.nextInt(5).toLong
    val values = held.getOrElseUpdate(group, ArrayBuffer.empty)
    place += 1
    if (!growing && values.nonEmpty && random.nextInt(5) < 2) envelope(Seq(group, values.remove(oldest(values, random.nextInt(values.size)))), -1, place)
    else {
      val value = if (random.nextInt(6) == 0) null else kind.value(random)
      val times = 1 + random.nextInt(2)
      (1 to times).foreach(_ => values += value)
      envelope(Seq(group, value), times, place)
    }
  }

  private def oldest(values: ArrayBuffer[Any], of: Int): Int = values.indexWhere(each => Kinds.identical(each, values(of)))

  /** Takes everything away: the values, each with the place of its leaving. */
  def emptied(group: Any): Seq[(Any, Long)] = {
    val all = held.getOrElse(group, ArrayBuffer.empty).toSeq
    held.remove(group)
    all.map { value => place += 1; (value, place) }
  }
}

object Kinds {
  val All: Seq[Kind] = Seq(
    Kind("BIGINT", LongType, random => if (random.nextInt(8) == 0) Long.MaxValue - random.nextInt(3) else random.nextInt(9) - 4L, whole(LongType, _.asInstanceOf[Long])),
    Kind("INT", IntegerType, random => random.nextInt(9) - 4, whole(IntegerType, _.asInstanceOf[Int].toLong)),
    Kind("SMALLINT", ShortType, random => (random.nextInt(9) - 4).toShort, whole(ShortType, _.asInstanceOf[Short].toLong)),
    Kind("TINYINT", ByteType, random => (random.nextInt(9) - 4).toByte, whole(ByteType, _.asInstanceOf[Byte].toLong)),
    Kind("DOUBLE", DoubleType, random => double(random), fractions(DoubleType, _.asInstanceOf[Double])),
    Kind("FLOAT", FloatType, random => double(random).toFloat, fractions(FloatType, _.asInstanceOf[Float].toDouble)),
    Kind("DECIMAL(10,2)", DecimalType(10, 2), random => Decimal(BigDecimal(random.nextInt(100000) - 50000, 2), 10, 2), decimals(DecimalType(10, 2))),
    Kind("DECIMAL(38,2)", DecimalType(38, 2), random => Decimal(BigDecimal(BigInt(10).pow(if (random.nextInt(4) == 0) 35 else 20) * (random.nextInt(19) - 9), 0).setScale(2), 38, 2), decimals(DecimalType(38, 2))),
    Kind("STRING", StringType, random => UTF8String.fromString(Seq("", "a", "ab", "b", "ä", "\ud83d\ude00")(random.nextInt(6))), ordered(StringType)),
    Kind("BINARY", BinaryType, random => Array.fill(random.nextInt(3))(random.nextInt(3).toByte - 1).map(_.toByte), ordered(BinaryType)),
    Kind("BOOLEAN", BooleanType, random => random.nextBoolean(), ordered(BooleanType)),
    Kind("ARRAY<DOUBLE>", ArrayType(DoubleType), random => new Columns(Seq(ArrayType(DoubleType))).unsafe(Seq(new GenericArrayData(Array.fill[Any](random.nextInt(3))(double(random))))).getArray(0), ordered(ArrayType(DoubleType))))

  /** What only grows and is asked for by place: the first and the last, what Spark keeps in buffers and objects of its own. */
  val Ordered: Kind = Kind("BIGINT by place", LongType, random => random.nextInt(9) - 4L, Seq(
    Asked(v => First(v, ignoreNulls = true), _.headOption.orNull),
    Asked(v => Last(v, ignoreNulls = true), _.lastOption.orNull),
    Asked(v => new Percentile(v, Literal(0.5)), values => if (values.isEmpty) null else median(values.map(_.asInstanceOf[Long].toDouble).sorted)),
    Asked(v => HyperLogLogPlusPlus(v), values => values.distinct.size.toLong)))

  def identical(a: Any, b: Any): Boolean = (a, b) match {
    case (a: Array[Byte], b: Array[Byte]) => java.util.Arrays.equals(a, b)
    case (a: Double, b: Double) => java.lang.Double.doubleToRawLongBits(a) == java.lang.Double.doubleToRawLongBits(b)
    case (a: Float, b: Float) => java.lang.Float.floatToRawIntBits(a) == java.lang.Float.floatToRawIntBits(b)
    case _ => a == b
  }

  private def double(random: Random): Double = random.nextInt(12) match {
    case 0 => Double.NaN
    case 1 => if (random.nextInt(3) == 0) Double.PositiveInfinity else 0.0
    case 2 => if (random.nextInt(3) == 0) Double.NegativeInfinity else -0.0
    case 3 => 1e30 * (random.nextInt(3) - 1)
    case _ => random.nextInt(1000) / 7.0
  }

  private def median(sorted: Seq[Double]): Double = {
    val middle = (sorted.size - 1) * 0.5
    val (low, high) = (sorted(middle.floor.toInt), sorted(middle.ceil.toInt))
    if (low == high) low else (middle.ceil - middle) * low + (middle - middle.floor) * high
  }

  private def unlessEmpty(answer: Seq[Any] => Any): Seq[Any] => Any = values => if (values.isEmpty) null else answer(values)

  /** What is asked of values of any type: the least, the largest, how many, all of them. */
  private def ordered(of: DataType): Seq[Asked] = {
    val column = new Columns(Seq(of))
    val spark = GenerateOrder(of)
    def compare(a: Any, b: Any): Int = {
      val byValue = spark.compare(a, b)
      if (byValue != 0) byValue else java.util.Arrays.compareUnsigned(column.bytes(Seq(a)).toArray, column.bytes(Seq(b)).toArray)
    }
    def bytes(value: Any): Seq[Byte] = column.bytes(Seq(value))
    val equalized = Door.normalized(BoundReference(0, of, nullable = true))
    Seq(
      Asked(v => Count(v), _.size.toLong),
      Asked(v => Min(v), unlessEmpty(_.reduce((a, b) => if (compare(a, b) <= 0) a else b))),
      Asked(v => Max(v), unlessEmpty(_.reduce((a, b) => if (compare(a, b) >= 0) a else b))),
      Asked(v => CollectList(v), values => new GenericArrayData(values.toArray)),
      Asked(v => CollectSet(v), values => new GenericArrayData(
        values.map(v => equalized.eval(InternalRow(v))).groupBy(bytes).map(_._2.head).toSeq.sortWith((a, b) => java.util.Arrays.compareUnsigned(bytes(a).toArray, bytes(b).toArray) < 0).toArray)))
  }

  private def GenerateOrder(of: DataType): Ordering[Any] =
    org.apache.spark.sql.catalyst.util.TypeUtils.getInterpretedOrdering(of)

  private def whole(of: DataType, long: Any => Long): Seq[Asked] = {
    def as(value: Long): Any = of match {
      case LongType => value
      case IntegerType => value.toInt
      case ShortType => value.toShort
      case ByteType => value.toByte
    }
    def bits(operation: (Long, Long) => Long): Seq[Any] => Any = unlessEmpty(values => as(values.map(long).reduce(operation)))
    ordered(of) ++ Seq(
      Asked(v => new Sum(v), unlessEmpty(_.map(v => BigInt(long(v))).sum.toLong)),
      Asked(v => new Average(v), unlessEmpty(values => SumChecks.exact(values.map(long(_).toDouble)) / values.size)),
      Asked(v => BitAndAgg(v), bits(_ & _)),
      Asked(v => BitOrAgg(v), bits(_ | _)),
      Asked(v => BitXorAgg(v), bits(_ ^ _)))
  }

  private def fractions(of: DataType, double: Any => Double): Seq[Asked] = ordered(of) ++ Seq(
    Asked(v => new Sum(v), unlessEmpty(values => SumChecks.exact(values.map(double)))),
    Asked(v => new Average(v), unlessEmpty(values => SumChecks.exact(values.map(double)) / values.size)))

  private def bounded(precision: Int, scale: Int): DecimalType = DecimalType(math.min(38, precision), math.min(38, scale))

  private def decimals(of: DecimalType): Seq[Asked] = {
    def total(values: Seq[Any]): JavaDecimal = values.map(_.asInstanceOf[Decimal].toJavaBigDecimal).foldLeft(JavaDecimal.ZERO)(_.add(_))
    def fitting(value: JavaDecimal, precision: Int, scale: Int): Any = {
      val scaled = value.setScale(scale, RoundingMode.HALF_UP)
      if (scaled.precision > precision) null else Decimal(scaled, precision, scale)
    }
    val sum = bounded(of.precision + 10, of.scale)
    val average = bounded(of.precision + 4, of.scale + 4)
    ordered(of) ++ Seq(
      Asked(v => new Sum(v), unlessEmpty(values => fitting(total(values), sum.precision, sum.scale))),
      Asked(v => new Average(v), unlessEmpty { values =>
        if (fitting(total(values), sum.precision, sum.scale) == null) null
        else fitting(total(values).divide(JavaDecimal.valueOf(values.size.toLong), new MathContext(38, RoundingMode.HALF_UP)), average.precision, average.scale)
      }))
  }
}
