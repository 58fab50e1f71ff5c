package penstock.kernel.engine

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.types._
import penstock.kernel.state.Entries

/** `bit_and`, `bit_or` and `bit_xor`: for each bit, in how many values it is set; from that all three follow, also when values leave.
  *
  * Numbers: how many values there are, then one for each bit.
  */
case class BitFold(valueType: DataType, operation: String) extends Fold {
  private val bits = valueType.defaultSize * 8
  override def longs: Int = bits + 1
  override def merges: Boolean = true

  override def add(g: Gathered, n: Int, o: Int, row: UnsafeRow, input: Int, weight: Long): Unit =
    if (!row.isNullAt(input)) {
      val value = Numbers.whole(row, input, valueType)
      g.numbers(n) += weight
      var i = 0
      while (i < bits) {
        g.numbers(n + 1 + i) += weight * ((value >>> i) & 1)
        i += 1
      }
    }

  override def fill(g: Gathered, n: Int, o: Int, entries: Array[Entries], buffer: InternalRow, at: Int): Unit =
    if (g.numbers(n) == 0) buffer.setNullAt(at)
    else {
      var value = 0L
      var i = 0
      while (i < bits) {
        if (set(g.numbers(n + 1 + i), g.numbers(n))) value |= 1L << i
        i += 1
      }
      valueType match {
        case LongType => buffer.setLong(at, value)
        case IntegerType => buffer.setInt(at, value.toInt)
        case ShortType => buffer.setShort(at, value.toShort)
        case ByteType => buffer.setByte(at, value.toByte)
      }
    }

  private def set(count: Long, all: Long): Boolean = operation match {
    case "and" => count == all
    case "or" => count > 0
    case "xor" => (count & 1) == 1
  }
}
