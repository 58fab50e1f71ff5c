package penstock.kernel.engine

import java.nio.file.{Files, Path}
import java.util.Random

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection}
import org.apache.spark.sql.types.{DataType, LongType, StructType}
import penstock.kernel.Checks
import penstock.kernel.Checks.{equal, holds}

/** What leaves a batch: packed envelopes, and changes in ranges of their order. */
object LeavingChecks {
  def main(args: Array[String]): Unit = {
    val checks = new Checks(args)
    checks.seeded("the changes of ranges, one after the other, are those of all", 10)(ranges)
    checks.seeded("what is packed comes out again, from memory and from files", 10)(packed)
    checks.check("an attempt that fails leaves no file, and two attempts have one each")(attempts())
    checks.close()
  }

  private val row = UnsafeProjection.create(Array[DataType](LongType, LongType))
  private val none = UnsafeProjection.create(Array.empty[DataType])(InternalRow.empty).copy()

  private def envelope(k: Long, v: Long, weight: Long): Array[Byte] =
    Envelope.stamped(Envelope.of(Target(5, 0, 5), Envelope.Row, none, row(InternalRow(k, v))), weight, 0, 0)

  /** Under each key a row that leaves, one that comes, both, or none. */
  private def some(random: Random): Seq[Array[Byte]] = (0L until 200L).flatMap { k =>
    Seq(envelope(k, 1, -1), envelope(k, 2, 1)).filter(_ => random.nextBoolean())
  }

  private def changes(sink: Sink, envelopes: Seq[Array[Byte]]): Seq[(Option[Seq[Byte]], Option[Seq[Byte]])] = {
    val found = new Changes(sink)
    envelopes.foreach(found.add)
    found.consolidated().toSeq.map(change => (Option(change.before).map(_.toSeq), Option(change.after).map(_.toSeq)))
  }

  private def ranges(random: Random): Unit = {
    val schema = StructType.fromDDL("k BIGINT, v BIGINT")
    val key = Seq(BoundReference(0, LongType, nullable = true))
    val envelopes = some(random)
    for (sink <- Seq(Sink(5, "keyed", schema, Seq(0), key), Sink(5, "bag", schema, Nil, Nil)); bits <- Seq(0, 1, 3, 6)) {
      val keyOf = new KeyOf(sink)
      val parts = envelopes.groupBy(each => keyOf(Bytes.ofRow(each).bytes).range(bits))
      holds(parts.keys.forall(part => part >= 0 && part < (1 << bits)), s"numbers of ranges: ${parts.keys}")
      holds(parts.size > (1 << bits) / 2, s"${parts.size} ranges of ${1 << bits} are used")
      equal((0 until (1 << bits)).flatMap(part => changes(sink, parts.getOrElse(part, Nil))), changes(sink, envelopes), s"$bits bits")
    }
  }

  private def packed(random: Random): Unit = inFolder { folder =>
    val envelopes = Seq.fill(random.nextInt(50))(Array.fill(random.nextInt(200))(random.nextInt.toByte))
    val size = envelopes.map(_.length + 4).sum
    Seq(0, size - 1, size, size + 1).foreach { bound =>
      val found = Packed.of(envelopes.iterator, bound, folder.toString)
      equal((found.file == null, found.size), (size <= bound, size.toLong), s"where it is with bound $bound, and its size")
      Seq(found, found.filed(folder.toString)).distinct.foreach { each =>
        equal(each.envelopes.map(_.toSeq).toSeq, envelopes.map(_.toSeq), "envelopes")
        each.delete()
      }
    }
    equal(Files.list(folder).count, 0L, "files left")
  }

  private def attempts(): Unit = inFolder { folder =>
    def envelopes: Iterator[Array[Byte]] = Iterator.fill(10)(new Array[Byte](100))
    val failing = envelopes ++ Iterator.continually[Array[Byte]](throw new IllegalStateException("no more"))
    val failure = scala.util.Try(Packed.of(failing, 10, folder.toString)).failed.get
    equal((failure.getMessage, Files.list(folder).count), ("no more", 0L), "a failure, and what it left")
    val two = Seq.fill(2)(Packed.of(envelopes, 10, folder.toString))
    two.head.delete()
    equal(two.last.envelopes.size, 10, "envelopes of the other attempt")
  }

  private def inFolder(body: Path => Unit): Unit = {
    val folder = Files.createTempDirectory("packed")
    try body(folder)
    finally {
      Files.list(folder).forEach(Files.delete(_))
      Files.delete(folder)
    }
  }
}
