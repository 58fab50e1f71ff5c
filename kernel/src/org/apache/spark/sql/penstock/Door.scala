package org.apache.spark.sql.penstock

import java.nio.file.Paths
import java.util.{List => JavaList, Map => JavaMap, UUID}
import org.apache.spark.sql.{DataFrame, Dataset, Encoders, Row}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate => LogicalAggregate, AsOfJoin, Join => LogicalJoin, LeafNode, LocalRelation, LogicalPlan, Project, SubqueryAlias, Window => LogicalWindow}
import org.apache.spark.sql.classic.{Dataset => ClassicDataset, ExpressionUtils, KeyValueGroupedDataset, SparkSession => ClassicSession}
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, DataSourceV2ScanRelation}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streaming.{OutputMode, StatefulProcessor, TimeMode}
import org.apache.spark.sql.types.{BinaryType, BooleanType, LongType, StructField, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.util.Utils
import penstock.kernel.engine.{Aggregate => AggregateOperator, _}
import penstock.kernel.log.Log
import penstock.kernel.source.{Hidden, ReadOptions, Stamps, StaticFile}
import scala.jdk.CollectionConverters._

/** What the planner in Python calls: Catalyst's trees taken apart, operators put together, levels and the sink. */
object Door {
  def list[T](items: scala.collection.Seq[T]): JavaList[T] = items.asJava
  private def seq[T](items: JavaList[T]): Seq[T] = items.asScala.toSeq

  // Reading Catalyst's trees

  def kind(node: AnyRef): String = node.getClass.getSimpleName
  /** The name under which a leaf was declared, or null if it is not one of ours. */
  def relation(leaf: LogicalPlan): String = leaf match {
    case scan: DataSourceV2ScanRelation => scan.relation.options.get("relation")
    case relation: DataSourceV2Relation => relation.options.get("relation")
    case _ => null
  }
  def schema(node: LogicalPlan): StructType = StructType(node.output.map(a => StructField(a.name, a.dataType, a.nullable)))
  def identity(attribute: NamedExpression): Long = attribute.exprId.id
  def canonicalText(node: LogicalPlan): String = PlanText.of(node)
  /** All files that a plan reads, each as its path and what tells whether it is another one: its length and the time of its last change. */
  def filesOf(node: LogicalPlan): Array[Array[String]] = node.collectWithSubqueries {
    case LogicalRelation(files: HadoopFsRelation, _, _, _, _) => files.location.listFiles(Nil, Nil).flatMap(_.files)
  }.flatten.map(f => Array(f.getPath.toUri.getPath, s"${f.getLen} ${f.getModificationTime}")).toArray
  /** Where the rows of a leaf that is no declared relation come from, for people. */
  def origin(leaf: LogicalPlan): String = leaf match {
    case LogicalRelation(files: HadoopFsRelation, _, _, _, _) => s"$files ${files.location.rootPaths.map(_.toUri.getPath).mkString(", ")}"
    case _: LocalRelation => "VALUES"
    case other => other.nodeName
  }
  /** The columns of the answer whose arrays stand in an order that Spark leaves open; `known` are those of the views that it reads, as view and column. */
  def unordered(node: LogicalPlan, known: JavaList[JavaList[String]]): Array[String] =
    new OpenOrder(seq(known).map(each => each.get(0) -> each.get(1)).toSet).columns(node).map(_.name).toArray
  def canonical(node: LogicalPlan): LogicalPlan = node.canonicalized

  /** The expression with the columns that `out` defines put in place of their names. What is put there stays as it is: it may use these names, for what
    * is beneath (`SELECT v FROM c UNION ALL SELECT -v FROM c` has one name for both).
    */
  def substituted(e: Expression, out: JavaList[NamedExpression]): Expression = {
    val defined = seq(out).map(x => x.exprId -> AggregatePlan.plain(x)).toMap
    e.transformUp { case a: AttributeReference if defined.contains(a.exprId) => defined(a.exprId) }
  }
  def named(e: NamedExpression, out: JavaList[NamedExpression]): NamedExpression = e match {
    case a: Alias => Alias(substituted(a.child, out), a.name)(a.exprId)
    case a => Alias(substituted(a, out), a.name)(a.exprId)
  }
  def plain(e: NamedExpression): Expression = AggregatePlan.plain(e)
  /** Another name for the column: `a` stands for what `e` is. */
  def renamed(e: NamedExpression, a: NamedExpression): NamedExpression = Alias(AggregatePlan.plain(e), a.name)(a.exprId)
  def standing(e: Expression, a: NamedExpression): NamedExpression = Alias(e, a.name)(a.exprId)
  def isColumn(e: Expression): Boolean = e.isInstanceOf[Attribute]
  def conjunction(conditions: JavaList[Expression]): Expression = if (conditions.isEmpty) null else seq(conditions).reduce(And(_, _))
  def notNull(keys: JavaList[Expression]): JavaList[Expression] = seq(keys).filter(_.nullable).map(IsNotNull(_): Expression).asJava
  /** Whether one of the conditions does not hold; null where there are none. */
  def unmet(conditions: JavaList[Expression]): Expression = seq(conditions).map {
    case IsNotNull(e) => IsNull(e): Expression
    case condition => Not(Coalesce(Seq(condition, Literal(false))))
  }.reduceOption(Or(_, _)).orNull
  /** Whether any of the keys is NULL; null where none can be. */
  def anyNull(keys: JavaList[Expression]): Expression = seq(keys).filter(_.nullable).map(IsNull(_): Expression).reduceOption(Or(_, _)).orNull
  /** A column that is the same in all rows, and stands for `a`. */
  def constant(a: NamedExpression, value: Any): NamedExpression = Alias(Literal(value, a.dataType), a.name)(a.exprId)
  /** A number below `parts` that spreads rows evenly, the same for equal rows. */
  def spread(row: JavaList[Expression], parts: Int): Expression = Pmod(new Murmur3Hash(seq(row)), Literal(parts))
  def text(e: Expression): String = e.sql
  def isTruth(e: Expression): Boolean = e.dataType == BooleanType
  /** The numbers of the columns that the expression reads. */
  def columnsOf(e: Expression): Array[Long] = e.references.map(_.exprId.id).toArray
  def aggregatesOf(node: LogicalAggregate): Array[String] =
    node.aggregateExpressions.flatMap(_.collect { case e: AggregateExpression => e.aggregateFunction.prettyName }).toArray
  def same(a: Expression, b: Expression): Boolean = a.semanticEquals(b)

  /** A column that nobody reads. */
  def placeholder(name: String): Attribute = AttributeReference(name, org.apache.spark.sql.types.NullType)()
  /** Values that Spark calls equal become equal bytes. */
  def normalized(e: Expression): Expression = NormalizeFloatingNumbers.normalize(e)
  /** What in the plan changes its value by itself: as written, with line and column where they are known. */
  def changing(analyzed: LogicalPlan): Array[String] = Changing.in(analyzed).toArray
  /** A relation that was declared, for planning only: it has columns, and no rows to read; `more` is known of it besides its name. */
  def declared(session: ClassicSession, name: String, schema: StructType, others: JavaList[String], more: JavaMap[String, String]): DataFrame = {
    val options = new CaseInsensitiveStringMap((more.asScala.toMap + ("relation" -> name)).asJava)
    ClassicDataset.ofRows(session, DataSourceV2Relation.create(DeclaredTable(name, schema, seq(others), makers = more.containsKey("makers")), None, None, options))
  }

  /** The columns that the streams of a query have their event time in. */
  def eventTimes(frame: DataFrame): Array[String] = frame.asInstanceOf[ClassicDataset[Row]].queryExecution.analyzed.collect {
    case relation: DataSourceV2Relation => Option(relation.options.get("eventTime")).filter(_.nonEmpty)
  }.flatten.distinct.toArray

  /** Where ASOF stands as the name of a relation that is joined, as line and column: without a MATCH_CONDITION Spark takes it for one. */
  def aliases(plan: LogicalPlan): Array[Array[Int]] = plan.collectWithSubqueries {
    case alias: SubqueryAlias if alias.alias.equalsIgnoreCase("asof") && AsOfAlias.isMeant(alias.origin) => alias.origin
  }.map(origin => Array(origin.line.getOrElse(1), origin.startPosition.getOrElse(0) + 1)).toArray
  def parsed(session: ClassicSession, text: String): LogicalPlan = session.sessionState.sqlParser.parsePlan(text)

  /** The query with nothing left open: see `Ties`. */
  def settled(frame: DataFrame): DataFrame = {
    val dataset = frame.asInstanceOf[ClassicDataset[Row]]
    ClassicDataset.ofRows(dataset.sparkSession, Ties.broken(dataset.queryExecution.analyzed))
  }
  /** The plan of a query as we read it: optimized by Catalyst, and said in what we know. */
  def planned(frame: DataFrame): LogicalPlan = {
    val dataset = frame.asInstanceOf[ClassicDataset[Row]]
    Streams.titled(Rewriting(ClassicDataset.ofRows(dataset.sparkSession, Distinct.hidden(dataset.queryExecution.analyzed)).queryExecution.optimizedPlan))
  }
  /** `versions` are null for the engine. */
  def times(
      streams: JavaMap[String, String], histories: JavaList[String], unmarked: JavaList[String], others: JavaList[String],
      versions: JavaMap[String, DataFrame]): Times =
    new Times(streams.asScala.toMap, seq(histories).toSet, seq(unmarked).toSet, seq(others).toSet, Option(versions).map(_.asScala.map { case (table, frame) =>
      table -> frame.asInstanceOf[ClassicDataset[Row]].queryExecution.analyzed
    }.toMap))
  /** Whether the time for which a query is corrected says anything about it. */
  def isRetained(plan: LogicalPlan): Boolean = Retained.isIn(plan)
  /** How far the watermark of a topic has come before a frame; the options are those of the source. */
  def watermark(options: JavaMap[String, String], frame: Long): Long = {
    val asked = ReadOptions.of(new CaseInsensitiveStringMap(options))
    val log = Log.at(asked.path)
    log.refresh()
    Stamps.before(log, asked, frame)
  }

  def number(e: Expression): Int = e.eval().asInstanceOf[Int]
  def joinPlan(join: LogicalJoin, closing: Closing): JoinPlan = new JoinPlan(join, Option(closing))
  def asOfPlan(join: AsOfJoin): AsOfPlan = new AsOfPlan(join)
  def retainedPlan(node: Retained): RetainedPlan = new RetainedPlan(node)
  def windowPlan(window: LogicalWindow): WindowPlan = new WindowPlan(window, SQLConf.get.sessionLocalTimeZone)
  def topPlan(partition: JavaList[Expression], orders: JavaList[SortOrder], columns: JavaList[Attribute], limit: Int, offset: Int, counted: String): TopPlan = {
    val by = counted match {
      case "rows" => Counted.Rows
      case "ranks" => Counted.Ranks
      case "groups" => Counted.Groups
    }
    new TopPlan(seq(partition), seq(orders), seq(columns), limit, offset, by)
  }
  def aggregatePlan(node: LogicalAggregate, growing: Boolean): AggregatePlan = new AggregatePlan(node, growing)
  /** How groups by windows that overlap are cut into slices; null where they are not. */
  def slicing(node: LogicalAggregate, plan: AggregatePlan, closing: Closing): Slicing = Slicing.of(node, plan, closing).orNull
  def sliced(slicing: Slicing, groups: JavaList[Expression], filters: JavaList[Expression]): JavaList[Expression] = slicing.key(seq(groups), seq(filters)).asJava

  // Putting operators together

  /** The expression over the row; a field of a struct that is made on the way is taken as it is, without making the struct. */
  def bound(e: Expression, row: JavaList[Attribute]): Expression = BindReferences.bindReference(e.transformUp {
    case GetStructField(made: CreateNamedStruct, field, _) => made.valExprs(field)
    case format: DateFormatClass => FormattedTime.of(format)
  }.transform { case struct: CreateNamedStruct => LongStruct.of(struct) }, AttributeSeq(seq(row)))
  def edge(
      operator: Int, port: Int, chain: Int, sliced: Boolean, makers: JavaList[Maker], filter: Expression, key: JavaList[Expression],
      value: JavaList[Expression], row: JavaList[Attribute]): Edge = {
    def bind(e: Expression): Expression = bound(e, row)
    val to = Target(operator, port, chain, if (sliced) Slices.Apart else 0)
    Edge(to, Option(filter).map(Lateness.quickly).map(bind), seq(key).map(bind), seq(value).map(bind), seq(makers))
  }
  def maker(filter: Expression, generator: Generator, width: Int, outer: Boolean, row: JavaList[Attribute]): Maker =
    Maker(Option(filter).map(bound(_, row)), bound(generator, row).asInstanceOf[Generator], width, outer)
  /** Every record of a table says what it changes; with the columns of its rows, `names` of `schema`, changes go on with the record. */
  def steps(schema: StructType, names: JavaList[String]): TableSteps = TableSteps(Option(names).map(seq(_).map(schema(_).dataType)))
  def upsert(id: Int, keyWidth: Int, width: Int, edges: JavaList[Edge], steps: TableSteps): Operator = Upsert(id, keyWidth, width, seq(edges), Option(steps))
  def bag(id: Int, relation: String, schema: StructType, edges: JavaList[Edge], steps: TableSteps): Operator =
    Bag(id, schema.length, seq(edges), Leaving.letters(relation, schema), Option(steps))
  /** The way of records of a topic that cannot be read. */
  def unread(relation: String, topic: String, row: JavaList[Attribute]): Edge = Leaving.unread(relation, topic, seq(row))
  /** Whether a column is NULL. */
  def isNull(e: Expression): Expression = IsNull(e)
  /** A record as JSON. */
  def json(columns: JavaList[Attribute]): Expression = Leaving.json(seq(columns))
  def missed(id: Int, keyWidth: Int, edges: JavaList[Edge]): Operator = Missed(id, keyWidth, seq(edges))
  def unique(id: Int, view: String, key: JavaList[Attribute], width: Int, edges: JavaList[Edge]): Operator =
    Unique(id, key.size, width, seq(edges), Leaving.doubled(view, seq(key)))
  def join(id: Int, plan: JoinPlan, left: JavaList[Attribute], right: JavaList[Attribute], edges: JavaList[Edge]): Operator =
    plan.operator(id, seq(left), seq(right), seq(edges))
  def asOf(id: Int, plan: AsOfPlan, left: JavaList[Attribute], right: JavaList[Attribute], edges: JavaList[Edge], closing: AsOfClosing): Operator =
    plan.operator(id, seq(left), seq(right), seq(edges), Option(closing))
  def retained(id: Int, plan: RetainedPlan, left: JavaList[Attribute], right: JavaList[Attribute], edges: JavaList[Edge]): Operator =
    plan.operator(id, seq(left), seq(right), seq(edges))
  def window(id: Int, plan: WindowPlan, edges: JavaList[Edge], closing: Closing): Operator = plan.operator(id, seq(edges), Option(closing))
  def top(id: Int, plan: TopPlan, growing: Boolean, spread: Int, edges: JavaList[Edge], closing: Closing): Operator =
    plan.operator(id, growing, spread, seq(edges), Option(closing))
  def aggregate(id: Int, plan: AggregatePlan, edges: JavaList[Edge], closing: Closing): Operator = plan.operator(id, seq(edges), Option(closing))
  def slices(id: Int, slicing: Slicing, edges: JavaList[Edge]): Operator = slicing.operator(id, seq(edges))
  def session(id: Int, node: Session, width: Int, edges: JavaList[Edge], closing: Closing): Operator =
    Sessions(id, node.keys.length, width, node.child.output.indexWhere(_.exprId == node.window.exprId), seq(edges), Option(closing).flatMap(_.dating))
  def hold(id: Int, keyWidth: Int, width: Int, edges: JavaList[Edge], closing: Closing): Operator = Hold(id, keyWidth, width, seq(edges), closing.timing)
  /** Keys of which equal ones have equal bytes. */
  def keyed(keys: scala.collection.Seq[Expression]): scala.collection.Seq[Expression] = keys.map(AggregatePlan.keyed(_, "GROUP BY"))
  def chain(id: Int, operators: JavaList[Operator]): Chain = Chain(id, seq(operators))

  // Streams before they enter the graph, as Spark's own plans: see `Streams`

  def known(rows: DataFrame, columns: JavaList[Attribute]): DataFrame = Streams.known(rows, seq(columns))
  def passing(rows: DataFrame, condition: Expression): DataFrame = Streams.passing(rows, condition)
  def generated(rows: DataFrame, generator: Generator, outer: Boolean, made: JavaList[Attribute]): DataFrame =
    Streams.generated(rows, generator, outer, seq(made))
  def computed(rows: DataFrame, items: JavaList[NamedExpression]): DataFrame = Streams.computed(rows, seq(items))
  def present(records: DataFrame): DataFrame = Streams.present(records)
  def outlived(records: DataFrame, rows: DataFrame, key: JavaList[String]): DataFrame = Streams.outlived(records, rows, seq(key))
  /** A column for what a function gives. */
  def result(name: String, call: Expression): Attribute = AttributeReference(name, call.dataType)()
  def function(call: PythonUDF): String = call.name
  /** What kind of function in Python is called, and its name, for all that are not one value from one row. */
  def functionsOf(analyzed: LogicalPlan): Array[Array[String]] = analyzed.collectWithSubqueries { case node => node.expressions }.flatten
    .flatMap(_.collect {
      case call: PythonUDAF => Array("an aggregate function", call.name)
      case call: PythonUDTF => Array("a table function", call.name)
      case call: PythonUDF if !call.udfDeterministic => Array("changing", call.name)
    }).toArray
  /** The functions of a plan as Python has packed them. */
  def functions(plan: LogicalPlan): Array[Array[Byte]] =
    plan.collectWithSubqueries { case node => node.expressions.flatMap(_.collect { case call: PythonFuncExpression => call.func.command.toArray }) }.flatten.toArray

  // The query

  /** Whether a query makes something of the watermark that stood before a record; Spark passes it on with other hidden columns, where one is read. */
  def readsWatermark(analyzed: LogicalPlan): Boolean = analyzed.collectWithSubqueries {
    case _: LeafNode => Nil
    case Project(items, _) => items.filterNot(_.isInstanceOf[Attribute])
    case node => node.expressions
  }.flatten.exists(_.exists { case a: AttributeReference => a.name.startsWith(Hidden.Watermark); case _ => false })

  /** Makes the session able to run what the planner builds. */
  def prepare(session: ClassicSession): Unit =
    if (!session.experimental.extraStrategies.contains(FeedStrategy)) session.experimental.extraStrategies ++= Seq(FeedStrategy, BeneathStrategy, RetainedStrategy, PeerOrderStrategy)

  /** The rows of a source as envelopes. Edges with a plan are folded before the shuffle where they can be. Targets are an operator, which of its
    * clocks, and its chain: those to be woken, those to be told of the watermark, those to be told of all its steps. `tasks` of a cascade are woken too.
    */
  def feed(
      source: DataFrame, edges: JavaList[Edge], plans: JavaList[AggregatePlan], ticks: JavaList[Integer], timed: JavaList[Integer],
      stepped: JavaList[Integer], slots: Int, tasks: Int): DataFrame = {
    val frame = source.asInstanceOf[ClassicDataset[Row]]
    val columns = frame.queryExecution.analyzed.output
    def at(name: String): Int = columns.indexWhere(_.name == name)
    val gatherings = seq(plans).map(p => Option(p).map(_.gathering).filter(_.merges))
    def targets(numbers: JavaList[Integer]): Seq[Target] = seq(numbers).grouped(3).map { case Seq(operator, port, chain) => Target(operator, port, chain) }.toSeq
    val entry = Entry(seq(edges), gatherings, at("_deleted"), at("_place"), at("_watermark"), targets(ticks), slots, targets(timed),
      targets(stepped), Cascade.waking(tasks, slots), UUID.randomUUID.toString)
    val output = Seq(AttributeReference("envelope", BinaryType, nullable = false)(), AttributeReference("group", LongType, nullable = false)())
    ClassicDataset.ofRows(frame.sparkSession, Feed(entry, output, frame.queryExecution.analyzed))
  }

  /** Where levels tell which windows are open. */
  def openWindows(session: ClassicSession): OpenWindows = {
    val made = new OpenWindows
    session.sparkContext.register(made)
    made
  }

  /** One level over its input, which has the columns envelope and group. */
  def level(input: DataFrame, chains: JavaList[Chain], slots: Int, pageLimit: Int, open: OpenWindows): DataFrame =
    stateful(input, slots, new Level(seq(chains).map(c => c.id -> Sent(c)).toMap, pageLimit, open, UUID.randomUUID.toString))

  /** All levels over their input, in so many tasks that run at once in this process; each chain has its level. */
  def cascade(input: DataFrame, chains: JavaList[Chain], levels: JavaList[Integer], tasks: Int, slots: Int, pageLimit: Int, open: OpenWindows): DataFrame = {
    val fed = seq(chains).flatMap(chain => chain.operators.flatMap(_.edges).map(_.to.chain).filter(_ != chain.id)).toSet
    val stations = seq(chains).zip(seq(levels)).map { case (chain, level) => chain.id -> Station(Sent(chain), level, fed(chain.id)) }
    val folder = Utils.getLocalDir(input.sparkSession.sparkContext.getConf)
    stateful(input, slots, new Cascade(stations.toMap, tasks, slots, pageLimit, open, folder, UUID.randomUUID.toString))
  }

  private def stateful(input: DataFrame, slots: Int, processor: StatefulProcessor[Long, Array[Byte], Array[Byte]]): DataFrame = {
    val frame = input.asInstanceOf[ClassicDataset[Row]]
    val execution = ClassicDataset.ofRows(frame.sparkSession, Beneath(frame.queryExecution.analyzed)).queryExecution
    val Seq(envelope, group) = execution.analyzed.output
    val out = new KeyValueGroupedDataset[Long, Array[Byte]](Encoders.scalaLong, Encoders.BINARY, execution, Seq(envelope), Seq(group))
      .transformWithState(processor, TimeMode.None(), OutputMode.Append())(Encoders.BINARY)
      .toDF("envelope")
    out.select(out.col("envelope"), ExpressionUtils.column(EnvelopeGroup(ExpressionUtils.expression(out.col("envelope")), slots)).as("group"))
  }

  /** The rows of a leaf that is no declared relation, as they are now, put into a file. */
  def writeStatic(session: ClassicSession, leaf: LogicalPlan, path: String): Unit = {
    val rows = ClassicDataset.ofRows(session, leaf).queryExecution.toRdd.map(_.asInstanceOf[UnsafeRow].copy())
    StaticFile.write(rows.toLocalIterator, Paths.get(path))
  }

  // What leaves a batch

  def sink(id: Int, name: String, schema: StructType, key: JavaList[Integer]): Sink = {
    val at = seq(key).map(_.toInt)
    Sink(id, name, schema, at, at.map(i => normalized(BoundReference(i, schema(i).dataType, schema(i).nullable))))
  }
  def deadLetters: Sink = Leaving.DeadLetters
  /** Runs the batch and writes what it changed in each sink to files: see `Leaving`. */
  def collect(batch: DataFrame, sinks: JavaList[Sink], limit: Long, folder: String, staged: String, alone: Boolean): Collected =
    new Leaving(seq(sinks), limit, folder, staged, alone).collected(batch)
}
