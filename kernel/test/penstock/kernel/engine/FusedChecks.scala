package penstock.kernel.engine

import java.util.Random

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Add, BoundReference, Expression, GenericInternalRow, GreaterThan, Literal}
import org.apache.spark.sql.penstock.LongStruct
import org.apache.spark.sql.types._
import penstock.kernel.Checks
import penstock.kernel.Checks.{equal, holds}

/** Rows that are gathered by compiled code come out as they do by the plain way. */
object FusedChecks {
  private val columns = Seq(BooleanType, ByteType, ShortType, IntegerType, DateType, LongType, TimestampType, LongType, StringType)
  private val span = new StructType().add("start", TimestampType).add("end", LongType)
  private val to = Target(3, 0, 1)

  def run(checks: Checks): Unit = {
    checks.seeded("compiled gathering gives what the plain one gives", 60)(same)
    checks.check("a key of text, or a fold that needs objects, is not compiled")(plain())
    checks.check("what Java would not compile is left alone")(large())
  }

  private def column(i: Int): Expression = BoundReference(i, columns(i), nullable = true)

  private def row(random: Random, keys: Int): InternalRow = new GenericInternalRow(columns.map { of =>
    val value = random.nextInt(keys) - keys / 2
    val found: Any = of match {
      case BooleanType => value % 2 == 0
      case ByteType => value.toByte
      case ShortType => value.toShort
      case IntegerType | DateType => value
      case StringType => org.apache.spark.unsafe.types.UTF8String.fromString(value.toString)
      case _ => if (random.nextInt(50) == 0) random.nextLong() else value.toLong
    }
    if (random.nextInt(10) == 0) null else found
  }.toArray[Any])

  private def key(random: Random): Seq[Expression] = Seq.fill(1 + random.nextInt(4))(random.nextInt(4)).map {
    case 0 => LongStruct(span, Seq(column(6), Add(column(5), Literal(60L))))
    case _ => column(random.nextInt(7))
  }

  /** Folds over columns 5 and 7 of the rows, which are values 0 and 1 on the edge; value 2 is a filter. */
  private def gathering(random: Random): Gathering = {
    val folds = Seq[Fold](
      CountFold(0), CountFold(1), CountFold(2), WholeSumFold(LongType, Overflow.Wraps), WholeAverageFold(LongType),
      GrowingWholeExtreme(LongType, largest = true), GrowingWholeExtreme(LongType, largest = false))
    Gathering(Seq.fill(1 + random.nextInt(4))(folds(random.nextInt(folds.size))).map(Folded(_, 0, if (random.nextInt(3) == 0) 2 else -1, 1)), 3)
  }

  private def edge(random: Random, key: Seq[Expression]): Edge = {
    val filter = if (random.nextBoolean()) Some(GreaterThan(column(5), Literal(-3L))) else None
    Edge(to, filter, key, Seq(column(5), column(7), column(0)))
  }

  private def same(random: Random): Unit = {
    val (chosen, made) = (gathering(random), edge(random, key(random)))
    val rows = Seq.fill(random.nextInt(3000))((row(random, 1 + random.nextInt(40)), if (random.nextInt(5) == 0) -1L else 1L, random.nextLong(), random.nextLong()))
    val fused = Fused.of(made, chosen).getOrElse(throw new AssertionError(s"not compiled: $made"))
    val (quick, slow, route) = (new Combiner(to, chosen), new Combiner(to, chosen), new Route(made))
    for ((each, weight, stamp, place) <- rows) {
      fused.add(each, quick, weight, stamp, place)
      if (route.takes(each)) slow.add(route.keyOf(each), route.valueOf(each), weight, stamp, place)
    }
    equal(told(quick), told(slow), s"of ${rows.size} rows")
    holds(told(quick).isEmpty, "what was given out is gone")
  }

  private def told(combiner: Combiner): Seq[Seq[Byte]] =
    Iterator.continually(combiner.take()).takeWhile(_ != null).map(_.toSeq).toSeq.sortBy(_.mkString(","))

  private def plain(): Unit = {
    val counted = Gathering(Seq(Folded(CountFold(0), 0, -1, 1)), 0)
    holds(Fused.of(Edge(to, None, Seq(column(8)), Nil), counted).isEmpty, "a key of text")
    holds(Fused.of(Edge(to, None, Nil, Nil), counted).isEmpty, "no key")
    val summed = Gathering(Seq(Folded(DoubleSumFold(LongType, average = false), 0, -1, 1)), 1)
    holds(Fused.of(Edge(to, None, Seq(column(5)), Seq(column(7))), summed).isEmpty, "a fold with objects")
  }

  private def large(): Unit = {
    val many = Gathering(Seq.tabulate(400)(i => Folded(WholeSumFold(LongType, Overflow.Wraps), i, -1, 1)), 400)
    val sums = Seq.tabulate(400)(i => Add(column(5), Literal(i.toLong)))
    holds(Fused.of(Edge(to, None, Seq(column(5)), sums), many).isEmpty, "400 sums in one method")
  }
}
