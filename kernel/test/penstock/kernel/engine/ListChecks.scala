package penstock.kernel.engine

import org.apache.spark.sql.catalyst.expressions.{Ascending, Attribute, Literal, SortOrder}
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateFunction, CollectList, CollectUnion, ListAgg}
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.types.{ArrayType, DataType, LongType, StringType}
import org.apache.spark.unsafe.types.UTF8String
import penstock.kernel.Checks
import penstock.kernel.Checks.holds
import penstock.kernel.state.Slot

/** Functions whose answer has all values of the group, where rows only come: the values lie in pages, not in one object. */
object ListChecks {
  private val Texts = Seq("a", "b", "ab", "").map(UTF8String.fromString)

  def run(checks: Checks): Unit = {
    checks.seeded("texts put together equal Spark's, where rows only come", 4)(random =>
      RankChecks.equalsSpark(asked(StringType, texts), _ => Texts(random.nextInt(Texts.size)), random, growing = true))
    checks.check("one more of 20,000 texts writes a few pages")(writes(asked(StringType, value => texts(value).take(1)), i => UTF8String.fromString(s"text $i")))
    checks.check("one more of 20,000 values, NULLs among them, writes a few pages")(
      writes(asked(LongType, value => Seq(CollectList(value, 0, 0, ignoreNulls = false))), i => i.toLong))
    checks.check("one more array in a union of 20,000 writes a few pages")(
      writes(asked(ArrayType(LongType), value => Seq(CollectUnion(value, 0, 0, ignoreNulls = true))), i => new GenericArrayData(Array[Any](i.toLong, i + 1L))))
  }

  private def texts(value: Attribute): Seq[AggregateFunction] =
    Seq(ListAgg(value, Literal("/")), ListAgg(value, Literal(""), Seq(SortOrder(value, Ascending))))

  private def asked(of: DataType, functions: Attribute => Seq[AggregateFunction]): AskedOfAll =
    new AskedOfAll(of, growing = true, distinct = false, (value, _) => functions(value))

  private def writes(asked: AskedOfAll, value: Int => Any): Unit = {
    val found = asked.operator(Slot.Limit)
    found.store.rereads = true
    found.batch((0 until 20_000).map(i => found.envelope(asked.row(value(i), 1L), 1, i)))
    found.batch(Seq(found.envelope(asked.row(value(20_001), 1L), 1, 20_001L)))
    val largest = found.store.pages.values.stream.mapToInt(_.length).max.getAsInt
    holds(found.store.writes < 12 && largest < 2 * Slot.Limit, s"${found.store.writes} pages are written, the largest has $largest bytes")
  }
}
