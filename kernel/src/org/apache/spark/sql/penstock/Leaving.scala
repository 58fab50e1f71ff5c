package org.apache.spark.sql.penstock

import java.nio.file.{Path, Paths}
import java.util.{ArrayList, LinkedHashMap, List => JavaList, Map => JavaMap, UUID}
import org.apache.spark.Partitioner
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.classic.{Dataset => ClassicDataset}
import org.apache.spark.sql.types._
import penstock.kernel.engine._

/** What a batch changed: how many changes each sink has that has any, and the files with their rows, in order.
  *
  * `staged`: the files are for the log to keep as they are; otherwise they are to be copied into the frame.
  */
final class Collected(val staged: Boolean) {
  val counts: JavaMap[String, Long] = new LinkedHashMap[String, Long]()
  val files: JavaMap[String, JavaList[String]] = new LinkedHashMap[String, JavaList[String]]()

  def add(sink: Sink, file: String, count: Long): Unit = {
    counts.merge(sink.name, count, (a, b) => a + b)
    files.computeIfAbsent(sink.name, _ => new ArrayList[String]()).add(file)
  }
}

/** What leaves a batch: the changes of all sinks, consolidated, as Arrow files.
  *
  * One job runs the batch; state must not be run twice. Its tasks return what leaves them, or the names of files in `folder` where that is
  * more than their share of `limit`. Up to `limit` bytes in all are consolidated here. Beyond that a second job reads the first one's
  * files, and each of its tasks consolidates one range of the order that changes have and writes it to files named after `staged`. Either
  * way the rows are the same, in the same order: by sink, then by `Change.under`. `alone`: its tasks wait for each other, and no other batch is run meanwhile.
  */
final class Leaving(sinks: Seq[Sink], limit: Long, folder: String, staged: String, alone: Boolean = false) {
  def collected(batch: DataFrame): Collected = {
    val (packed, doubled) = run(batch).unzip
    try {
      doubled.filter(_ != null).minOption(Leaving.ByRow).foreach(envelope => throw Leaving.doubledKey(envelope))
      if (packed.map(_.size).sum <= limit) here(packed) else apart(batch, packed)
    } finally packed.foreach(_.delete())
  }

  /** What leaves each task, and one of the keys that have several rows, if there is any. */
  private def run(batch: DataFrame): Seq[(Packed, Array[Byte])] = {
    val rows = batch.asInstanceOf[ClassicDataset[Row]].queryExecution.toRdd
    val found = rows.mapPartitionsWithEvaluator(new Parting(sinks.map(_.id).toSet, limit / math.max(1, rows.getNumPartitions), folder))
    (if (alone) Relay.alone(found.collect()) else found.collect()).toSeq
  }

  private def here(packed: Seq[Packed]): Collected = {
    val found = new Collected(staged = false)
    Leaving.written(sinks, packed.iterator.flatMap(_.envelopes), sink => Paths.get(folder, s"${sink.name}.arrow")).foreach(found.add _ tupled _)
    found
  }

  private def apart(batch: DataFrame, packed: Seq[Packed]): Collected = {
    val (known, prefix, bits) = (sinks, staged, Leaving.bits(packed.map(_.size).sum, limit))
    val filed = packed.filter(_.size > 0).map(_.filed(folder))
    try {
      val written = batch.sparkSession.sparkContext.parallelize(filed, filed.size)
        .mapPartitions(pieces => new Ranged(known, bits, pieces.flatMap(_.envelopes)))
        .partitionBy(new ByNumber(1 << bits))
        .mapPartitions { chunks =>
          val envelopes = chunks.flatMap { case (_, chunk) => chunk.envelopes }
          Leaving.written(known, envelopes, _ => Paths.get(s"$prefix~${UUID.randomUUID()}.arrow")).iterator
        }.collect()
      val found = new Collected(staged = true)
      for (sink <- sinks; (_, file, count) <- written.filter(_._1.id == sink.id)) found.add(sink, file, count)
      found
    } finally filed.foreach(_.delete())
  }
}

object Leaving {
  val DeadLetters: Sink = Sink(-1, "dead-letters", StructType.fromDDL("relation STRING, partition INT, offset BIGINT, reason STRING, row STRING"), Nil, Nil)
  val Doubled: Target = Target(-2, 0, -2)
  /** What a source has besides of a record that cannot be read: the reason, its key and its value. */
  private val Unread = Seq("_bad", "_key", "_value")
  private val NotThere = "a deletion that finds no equal row"
  private val MostBits = 10
  private val Json = Map(
    "ignoreNullFields" -> "false",
    "timestampFormat" -> "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat" -> "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")

  /** The way of a bag's deletion that finds nothing, over the row and then the partition and offset of the record. */
  def letters(relation: String, schema: StructType): Edge = {
    val row = DataTypeUtils.toAttributes(schema)
    val record = Seq(AttributeReference("partition", IntegerType)(), AttributeReference("offset", LongType)())
    val letter = Literal(relation) +: record :+ Literal(NotThere) :+ json(row)
    edge(Target(DeadLetters.id, 0, DeadLetters.id), record, letter, row ++ record)
  }

  /** The way of a record that cannot be read, over a source's row: where it lies, why it cannot be read, and what it is, as text. */
  def unread(relation: String, topic: String, row: Seq[Attribute]): Edge = {
    val Seq(bad, key, value) = Unread.map(name => row.find(_.name == name).get)
    val record = Seq("_partition", "_offset").map(name => row.find(_.name == name).get)
    def text(bytes: Attribute): Expression = MakeValidUTF8(Cast(bytes, StringType)).replacement
    val found = CreateNamedStruct(Seq(Literal("topic"), Literal(topic), Literal("key"), text(key), Literal("value"), text(value)))
    val letter = Literal(relation) +: record :+ bad :+ StructsToJson(Json, found, Some("UTC")).replacement
    edge(Target(DeadLetters.id, 0, DeadLetters.id), record, letter, row).copy(filter = Some(BindReferences.bindReference(IsNotNull(bad): Expression, AttributeSeq(row))))
  }

  /** The way of a key that has several rows. */
  def doubled(view: String, key: Seq[Attribute]): Edge = edge(Doubled, key, Seq(Literal(view), json(key)), key)

  private def edge(to: Target, key: Seq[Expression], value: Seq[Expression], row: Seq[Attribute]): Edge = {
    def bound(e: Expression): Expression = BindReferences.bindReference(e, AttributeSeq(row))
    Edge(to, None, key.map(bound), value.map(bound))
  }

  def json(columns: Seq[Attribute]): Expression =
    StructsToJson(Json, CreateNamedStruct(columns.flatMap(c => Seq(Literal(c.name), c))), Some("UTC")).replacement

  private def doubledKey(envelope: Array[Byte]): DoubledKey = {
    val row = Envelope.read(envelope, new UnsafeRow(2))
    new DoubledKey(row.getUTF8String(0).toString, row.getUTF8String(1).toString)
  }

  private[penstock] val ByRow: Ordering[Array[Byte]] = Ordering.comparatorToOrdering(Rows.ByRow)

  /** How many ranges a second job has, as a power of two: each about a quarter of what is consolidated at once elsewhere, for there are
    * several tasks at a time.
    */
  private def bits(size: Long, limit: Long): Int = {
    val ranges = size / math.max(1, limit / 4)
    math.min(MostBits, 64 - java.lang.Long.numberOfLeadingZeros(ranges))
  }

  /** Consolidates the envelopes and writes a file for each sink that has changes: the sinks, their files, and how many rows each has. */
  private def written(sinks: Seq[Sink], envelopes: Iterator[Array[Byte]], path: Sink => Path): Seq[(Sink, String, Long)] = {
    val changes = sinks.map(sink => sink.id -> new Changes(sink)).toMap
    envelopes.foreach(envelope => changes(Envelope.operator(envelope)).add(envelope))
    for (sink <- sinks; consolidated = changes(sink.id).consolidated(); if consolidated.nonEmpty) yield {
      val file = path(sink)
      ArrowFiles.write(sink, consolidated, file)
      (sink, file.toString, consolidated.iterator.map(_.times).sum)
    }
  }
}

/** What leaves each task for those who want it, and one of the keys that have several rows, if there is any. */
private final class Parting(wanted: Set[Int], share: Long, folder: String) extends Work[InternalRow, (Packed, Array[Byte])] {
  override def of(partition: Int, rows: Iterator[InternalRow]): Iterator[(Packed, Array[Byte])] = {
    var doubled: Array[Byte] = null
    val leaving = rows.map(_.getBinary(0)).filter { envelope =>
      val to = Envelope.operator(envelope)
      if (to == Leaving.Doubled.operator && (doubled == null || Leaving.ByRow.lt(envelope, doubled))) doubled = envelope
      wanted(to)
    }
    val packed = Packed.of(leaving, share, folder)
    Iterator((packed, doubled))
  }
}

/** Envelopes with the number of their range, many together: Spark's shuffle pays for each item. */
private final class Ranged(sinks: Seq[Sink], bits: Int, envelopes: Iterator[Array[Byte]]) extends Iterator[(Int, Packed)] {
  private val keys = sinks.map(sink => sink.id -> new KeyOf(sink)).toMap
  private val open = new LinkedHashMap[Int, Packing]()

  override def hasNext: Boolean = envelopes.hasNext || !open.isEmpty

  override def next(): (Int, Packed) = {
    while (envelopes.hasNext) {
      val envelope = envelopes.next()
      val range = keys(Envelope.operator(envelope))(Bytes.ofRow(envelope).bytes).range(bits)
      val packing = open.computeIfAbsent(range, _ => new Packing())
      packing.add(envelope)
      if (packing.size >= Ranged.Chunk) return taken(range)
    }
    taken(open.keySet.iterator.next())
  }

  private def taken(range: Int): (Int, Packed) = (range, open.remove(range).packed())
}

private object Ranged {
  val Chunk = 1 << 16
}

/** The key is the number of the partition. */
private final class ByNumber(override val numPartitions: Int) extends Partitioner {
  override def getPartition(key: Any): Int = key.asInstanceOf[Int]
}
