package penstock.kernel.engine

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}
import java.math.{BigDecimal => JavaDecimal}
import java.util.Random

import org.apache.spark.sql.catalyst.expressions.SpecificInternalRow
import org.apache.spark.sql.types.LongType
import penstock.kernel.Checks
import penstock.kernel.Checks.{equal, holds}

/** Sums that do not depend on the order of what comes and leaves. */
object SumChecks {
  def run(checks: Checks): Unit = {
    checks.seeded("a sum of doubles is the exact one, rounded once", 200)(sums)
    checks.seeded("sums of doubles can be put together and written down", 100)(merged)
    checks.check("half-way cases are rounded by what lies far below")(halfWay())
    checks.check("infinities and NaN leave again")(leaving())
    checks.check("a sum of doubles that does not fit is infinite until enough of it has left")(giants())
    checks.check("a sum of whole numbers that does not fit wraps around, is NULL, or an error")(overflows())
  }

  /** By decimals, which are exact; infinities and NaN as IEEE 754 has them. */
  def exact(values: Seq[Double]): Double = {
    val (finite, others) = values.partition(java.lang.Double.isFinite)
    if (others.nonEmpty) if (others.sum.isNaN) Double.NaN else others.sum // a NaN has many forms
    else finite.foldLeft(JavaDecimal.ZERO)((sum, value) => sum.add(new JavaDecimal(value))).doubleValue + 0.0
  }

  /** Of all magnitudes, now and then the smallest and the largest there are. */
  private def wild(random: Random): Double = random.nextInt(10) match {
    case 0 => java.lang.Double.longBitsToDouble(random.nextInt(1 << 20)) * (random.nextInt(3) - 1)
    case 1 => random.nextInt(100) - 50
    case 2 if random.nextInt(4) == 0 => Double.MaxValue / (1 << random.nextInt(4)) * (random.nextInt(3) - 1)
    case _ => random.nextGaussian() * math.pow(2, random.nextInt(600) - 300)
  }

  private def same(found: Double, wanted: Double, what: => String): Unit =
    holds(java.lang.Double.doubleToRawLongBits(found) == java.lang.Double.doubleToRawLongBits(wanted), s"$what: found $found, wanted $wanted")

  private def sums(random: Random): Unit = {
    val values = Seq.fill(random.nextInt(60))(wild(random))
    val leaving = values.filter(_ => random.nextBoolean())
    val steps = Levels.shuffled(values.map((_, 1L)) ++ leaving.map((_, -1L)), random)
    val sum = new ExactSum
    steps.foreach { case (value, weight) => sum.add(value, weight) }
    same(sum.value, exact(values.diff(leaving)), s"${values.size} values less ${leaving.size}")
    val weight = random.nextLong() >> random.nextInt(63)
    val times = new ExactSum
    times.add(3.3, weight)
    same(times.value, new JavaDecimal(3.3).multiply(JavaDecimal.valueOf(weight)).doubleValue, s"3.3 times $weight")
  }

  private def merged(random: Random): Unit = {
    val parts = Seq.fill(1 + random.nextInt(5))(Seq.fill(random.nextInt(20))(wild(random)))
    val whole = new ExactSum
    Levels.shuffled(parts, random).foreach { values =>
      val part = new ExactSum
      values.foreach(part.add(_, 1))
      whole.add(copied(part))
    }
    same(copied(whole).value, exact(parts.flatten), "sums of sums")
  }

  private def copied(sum: ExactSum): ExactSum = {
    val bytes = new ByteArrayOutputStream()
    sum.write(new DataOutputStream(bytes))
    ExactSum.read(new DataInputStream(new ByteArrayInputStream(bytes.toByteArray)))
  }

  private def halfWay(): Unit = for (sign <- Seq(1.0, -1.0); far <- Seq(1e-300, 0.0, -1e-300)) {
    val values = Seq(sign, sign * math.ulp(1.0) / 2, far)
    val sum = new ExactSum
    values.foreach(sum.add(_, 1))
    same(sum.value, exact(values), values.toString)
  }

  private def leaving(): Unit = {
    val sum = new ExactSum
    Seq(1.5, Double.NaN, Double.PositiveInfinity, Double.NegativeInfinity).foreach(sum.add(_, 1))
    same(sum.value, Double.NaN, "all")
    sum.add(Double.NaN, -1)
    same(sum.value, Double.NaN, "both infinities")
    sum.add(Double.NegativeInfinity, -1)
    same(copied(sum).value, Double.PositiveInfinity, "one infinity")
    sum.add(Double.PositiveInfinity, -1)
    same(copied(sum).value, 1.5, "none of them")
    sum.add(1.5, -1)
    same(sum.value, 0.0, "nothing")
  }

  private def giants(): Unit = {
    val sum = new ExactSum
    Seq(2.0, -1e308, -1e308).foreach(sum.add(_, 1))
    same(copied(sum).value, Double.NegativeInfinity, "too small")
    sum.add(-1e308, -1)
    same(copied(sum).value, -1e308, "one has left")
    sum.add(-1e308, -1)
    same(copied(sum).value, 2.0, "both have left")
    sum.add(math.pow(2, 900), 1)
    sum.add(math.pow(2, 899), -2)
    same(sum.value, 2.0, "a giant outweighed by others")
    sum.add(Double.MaxValue, Long.MaxValue)
    sum.add(Double.MaxValue, 1 - Long.MaxValue)
    same(copied(sum).value, Double.MaxValue, "often")
  }

  private def overflows(): Unit = {
    def filled(overflow: Overflow, weights: Long*): Any = {
      val fold = WholeSumFold(LongType, overflow)
      val gathered = new Gathered(fold.longs, 0)
      val row = new Columns(Seq(LongType)).unsafe(Seq(Long.MaxValue))
      weights.foreach(fold.add(gathered, 0, 0, row, 0, _))
      val buffer = new SpecificInternalRow(Seq(LongType))
      fold.fill(gathered, 0, 0, Array.empty, buffer, 0)
      if (buffer.isNullAt(0)) null else buffer.getLong(0)
    }
    equal(filled(Overflow.Wraps, 2), -2L, "wrapped")
    equal(filled(Overflow.IsNull, 2), null, "NULL")
    equal(filled(Overflow.IsNull, 2, -1), Long.MaxValue, "after one has left")
    equal(filled(Overflow.IsError, 2, -1), Long.MaxValue, "after one has left")
    equal(scala.util.Try(filled(Overflow.IsError, 2)).isFailure, true, "an error")
  }
}
