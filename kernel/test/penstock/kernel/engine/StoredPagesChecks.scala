package penstock.kernel.engine

import java.util.Random

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.encoders.{encoderFor, ExpressionEncoder}
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.CompositeKeyStateEncoder
import penstock.kernel.Checks
import penstock.kernel.Checks.equal

/** Pages lie where Spark's own map state would have them. */
object StoredPagesChecks {
  def run(checks: Checks): Unit = checks.seeded("pages lie under the keys of Spark's map state", 5)(keys)

  private def keys(random: Random): Unit = {
    val groups = encoderFor(Encoders.scalaLong)
    val addresses = encoderFor(Encoders.BINARY)
    val spark = new CompositeKeyStateEncoder(groups.asInstanceOf[ExpressionEncoder[Any]], addresses, addresses, StoredPages.Name)
    val ours = new PageKey
    (0 to 20).foreach { length =>
      val (group, address) = (random.nextLong(), new Array[Byte](length))
      random.nextBytes(address)
      val wanted = spark.encodeCompositeKey(unsafe(groups.createSerializer()(group)), unsafe(addresses.createSerializer()(address)))
      equal(ours.row(group, address).getBytes.toSeq, wanted.getBytes.toSeq, s"the key of group $group and $length bytes")
    }
  }

  private def unsafe(row: InternalRow): UnsafeRow = row.asInstanceOf[UnsafeRow]
}
