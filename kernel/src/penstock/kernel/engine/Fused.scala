package penstock.kernel.engine

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeProjection}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodeAndComment, CodeFormatter, CodeGenerator, CodegenContext, ExprCode}
import org.apache.spark.sql.penstock.LongStruct
import org.apache.spark.sql.types._

/** An edge and the gathering at its end, compiled into one piece: a row is asked whether it is taken, its key is found and its values are folded without
  * anything being written down in between. For keys of numbers, days and times, and for folds of numbers.
  */
abstract class Fused {
  def add(row: InternalRow, into: Combiner, weight: Long, stamp: Long, place: Long): Unit
}

object Fused {
  /** Java does not compile methods with more bytes of code. */
  private val MostBytes = 8000
  private val Mix = "0x9E3779B97F4A7C15L"

  def of(edge: Edge, gathering: Gathering): Option[Fused] =
    for (key <- KeyWords.of(edge.key) if edge.makers.isEmpty && gathering.objects == 0; made <- compiled(edge, gathering, key)) yield made

  private def compiled(edge: Edge, gathering: Gathering, key: KeyWords): Option[Fused] = {
    val ctx = new CodegenContext
    val filter = edge.filter.map(_.genCode(ctx))
    val leaves = key.leaves.map(_.expression)
    val values = ctx.generateExpressions(leaves ++ edge.value, doSubexpressionElimination = true)
    val shared = ctx.subexprFunctionsCode
    val (found, arguments) = values.splitAt(leaves.size)
    folded(gathering, arguments).flatMap { folds =>
      val write = ctx.addReferenceObj("key", UnsafeProjection.create(edge.key), classOf[UnsafeProjection].getName)
      val asked = filter.fold("")(each => s"${each.code}\nif (${each.isNull} || !${each.value}) return;")
      val body =
        s"""$asked
           |$shared
           |${values.map(_.code).mkString("\n")}
           |${key.declared(found)}
           |int at = 0;
           |long hash = ${key.names.head};
           |${key.names.tail.map(word => s"hash = (hash ^ (hash >>> 32) ^ $word) * $Mix;").mkString("\n")}
           |hash ^= hash >>> 29;
           |long[] index = into.index();
           |long[] held = into.held();
           |int slot = (int) (hash >>> 12) & (index.length - 1);
           |while (at == 0) {
           |  long entry = index[slot];
           |  int k = (int) entry + ${Combiner.Numbers + gathering.longs};
           |  if (entry == 0) {
           |    at = into.insert(slot, $write.apply(i), hash);
           |    held = into.held();
           |    k = at + ${Combiner.Numbers + gathering.longs};
           |    if (!(${key.same("held", "k")})) throw new IllegalStateException("a key is not written as it is read");
           |  } else if ((entry ^ hash) >>> 32 == 0 && ${key.same("held", "k")}) at = (int) entry;
           |  slot = (slot + 1) & (index.length - 1);
           |}
           |if (stamp > held[at + 1]) held[at + 1] = stamp;
           |if (place > held[at + 2]) held[at + 2] = place;
           |held[at + ${Combiner.Numbers}] += weight;
           |$folds
           |into.counted();""".stripMargin
      made(ctx, body)
    }
  }

  /** All folds; None if there is one that cannot be said in this way. */
  private def folded(gathering: Gathering, values: Seq[ExprCode]): Option[String] = {
    val starts = gathering.folds.scanLeft(Combiner.Numbers + 1)((at, each) => at + each.fold.longs)
    val said = gathering.folds.zip(starts).map { case (each, at) =>
      each.fold.code("held", s"at + $at", i => values(each.input + i)).map { text =>
        if (each.filter < 0) text else s"if (!${values(each.filter).isNull} && ${values(each.filter).value}) { $text }"
      }
    }
    if (said.forall(_.nonEmpty)) Some(said.flatten.mkString("\n")) else None
  }

  private def made(ctx: CodegenContext, body: String): Option[Fused] = {
    val text =
      s"""public java.lang.Object generate(Object[] references) { return new Made(references); }
         |final class Made extends ${classOf[Fused].getName} {
         |  private Object[] references;
         |  ${ctx.declareMutableStates()}
         |  public Made(Object[] references) {
         |    this.references = references;
         |    ${ctx.initMutableStates()}
         |    ${ctx.initPartition()}
         |  }
         |  public void add(InternalRow ${ctx.INPUT_ROW}, ${classOf[Combiner].getName} into, long weight, long stamp, long place) {
         |    $body
         |  }
         |  ${ctx.declareAddedFunctions()}
         |}""".stripMargin
    val code = CodeFormatter.stripOverlappingComments(new CodeAndComment(text, ctx.getPlaceHolderToComments()))
    val (compiled, size) = CodeGenerator.compile(code)
    if (size.maxMethodCodeSize > MostBytes) None else Some(compiled.generate(ctx.references.toArray).asInstanceOf[Fused])
  }
}

/** A key that has words of 64 bits only, as Spark writes it: `[nulls][a word for each part][of each part that is a struct: nulls, its fields]`.
  *
  * @param leaves all values, in the order in which they are compared
  */
private final class KeyWords(val leaves: Seq[Leaf], nulls: Seq[Int]) {
  /** The words of NULLs, then those of the values. */
  val names: Seq[String] = nulls.map(at => s"nulls$at") ++ leaves.map(leaf => s"word${leaf.at}")
  private val places = nulls ++ leaves.map(_.at)

  /** The words, computed. */
  def declared(values: Seq[ExprCode]): String = {
    val words = leaves.zip(values).map { case (leaf, value) => s"long word${leaf.at} = ${value.isNull} ? 0L : ${Leaf.word(leaf.expression.dataType, value.value.toString)};" }
    val bits = nulls.map { at =>
      val mine = leaves.zip(values).collect { case (leaf, value) if leaf.nulls == at => s"(${value.isNull} ? ${1L << leaf.bit}L : 0L)" }
      s"long nulls$at = ${if (mine.isEmpty) "0L" else mine.mkString(" | ")};"
    }
    (words ++ bits).mkString("\n")
  }

  /** Whether the words are those of a key that begins at `start`. */
  def same(held: String, start: String): String = names.zip(places).map { case (name, at) => s"$held[$start + $at] == $name" }.mkString(" && ")
}

/** One value of a key: at which word it lies, and in which word which bit says that it is NULL. */
private case class Leaf(expression: Expression, at: Int, nulls: Int, bit: Int)

private object Leaf {
  /** As a word, the way Spark writes it into a row. */
  def word(of: DataType, value: String): String = of match {
    case BooleanType => s"($value ? 1L : 0L)"
    case ByteType => s"($value & 0xFFL)"
    case ShortType => s"($value & 0xFFFFL)"
    case IntegerType | DateType => s"($value & 0xFFFFFFFFL)"
    case _ => value
  }
  def isWord(of: DataType): Boolean = of match {
    case BooleanType | ByteType | ShortType | IntegerType | DateType | LongType | TimestampType | TimestampNTZType => true
    case _ => false
  }
}

private object KeyWords {
  private val Most = 64

  def of(key: Seq[Expression]): Option[KeyWords] = {
    val structs = key.scanLeft(1 + key.size) { case (at, LongStruct(_, fields)) => at + 1 + fields.size; case (at, _) => at }
    val leaves = key.zipWithIndex.map {
      case (LongStruct(_, fields), i) => Some(fields.zipWithIndex.map { case (field, j) => Leaf(field, structs(i) + 1 + j, structs(i), j) })
      case (part, i) if Leaf.isWord(part.dataType) => Some(Seq(Leaf(part, 1 + i, 0, i)))
      case _ => None
    }
    val nested = key.zip(structs).collect { case (_: LongStruct, at) => at }
    if (key.isEmpty || key.size > Most || !leaves.forall(_.nonEmpty)) None else Some(new KeyWords(leaves.flatten.flatten, 0 +: nested))
  }
}
