package penstock.kernel.engine

import java.util.Random

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, DateFormatClass, Expression, Literal, UnsafeProjection}
import org.apache.spark.sql.penstock.FormattedTime
import org.apache.spark.sql.types.TimestampType
import penstock.kernel.Checks
import penstock.kernel.Checks.{equal, holds}

/** Times as texts that are kept, against texts that are made for each. */
object FormatChecks {
  private val Zones = Seq("UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Beirut", "America/Havana", "Pacific/Apia", "Africa/Monrovia", "Australia/Lord_Howe")
  private val Patterns = Seq("yyyy-MM-dd", "HH:mm", "yyyy-MM-dd HH:mm", "MM/yy", "h a")
  private val time = BoundReference(0, TimestampType, nullable = true)
  private val Minute = 60000000L

  def run(checks: Checks): Unit = {
    checks.seeded("texts of days and minutes are those of each time", 3)(random => for (zone <- Zones; pattern <- Patterns) compare(random, zone, pattern))
    checks.check("patterns that show seconds are left alone") {
      for (pattern <- Seq("HH:mm:ss", "yyyy-MM-dd'T'HH", "S", "VV"))
        holds(FormattedTime.of(DateFormatClass(time, Literal(pattern), Some("UTC"))).isInstanceOf[DateFormatClass], pattern)
    }
  }

  private def compare(random: Random, zone: String, pattern: String): Unit = {
    val whole = DateFormatClass(time, Literal(pattern), Some(zone))
    val kept = FormattedTime.of(whole)
    holds(kept.isInstanceOf[FormattedTime], pattern)
    val (one, other) = (UnsafeProjection.create(Seq(kept)), UnsafeProjection.create(Seq[Expression](whole)))
    // From 1880 to 2090, in steps within a minute, a day or a year, forwards and backwards.
    var at = (random.nextDouble() * 210 - 90).toLong * 365 * 1440 * Minute
    for (_ <- 1 to 400) {
      val row = if (random.nextInt(50) == 0) InternalRow(null) else InternalRow(at)
      equal(one(row).copy(), other(row).copy(), s"$zone $pattern at $at")
      at += ((random.nextDouble() - 0.45) * Seq(Minute / 4, 60 * Minute, 1440 * Minute, 400 * 1440 * Minute)(random.nextInt(4))).toLong
    }
  }
}
