"""The oracle: what Spark's batch engine says of a view over a prefix of the log.

It shares nothing with the incremental engine but the log, and the condition that leaves out late rows, which is part of
the query: relations are folded by plain Spark SQL, the view's query is run as the user wrote it, but for ties: they are
settled in the same way. It is the specification in the tests, and `penstock verify` in production.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import MapType, StructField, StructType

from penstock.engine.columns import schema_of
from penstock.engine.compile import door_of, frame_of, refusal, unordered_columns
from penstock.engine.source import all_streams, columns_of, other_streams, read_topic, watermark_at
from penstock.engine.timing import Times, known_of, marks_of, retains
from penstock.engine.versions import versions_of
from penstock.model import Pipeline, Stream, Table
from penstock.schema import Schema

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Difference:
    """Rows that one side has and the other has not, each as often as it is missing."""

    missing: tuple[Row, ...]
    unexpected: tuple[Row, ...]

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected)


class Oracle:
    """A pipeline's views by Spark batch, over the frames before `until`."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline, log: Path, until: int) -> None:
        self._spark = self._session(spark)
        self._declared = {view.name: view for view in pipeline.views}
        self._pending = {view.name.lower(): view for view in pipeline.views}
        self._asked: dict[str, DataFrame] = {}
        self._views: dict[str, DataFrame] = {}
        self._complete: dict[str, int] = {}
        versions: dict[str, DataFrame] = {}
        for relation in pipeline.relations:
            name, marks = relation.name, marks_of(pipeline, relation)
            others = all_streams(relation, pipeline) if retains(pipeline) else other_streams(relation, pipeline)
            records = read_topic(
                self._spark,
                log,
                relation.topic,
                until_frame=until,
                relation=name,
                known=known_of(relation),
                streams=others,
                **marks,
            )
            self._complete[relation.name] = watermark_at(self._spark, log, relation.topic, until, **marks)
            self._show(relation, folded(relation, records))
            if retains(pipeline) and not (isinstance(relation, Stream) and relation.event_time):
                versions[relation.name] = versions_of(relation, records, list(others))
        self._times = Times(self._spark, door_of(self._spark), pipeline.relations, versions)
        for view in pipeline.views:
            self._define(view.name.lower())

    def _session(self, spark: SparkSession) -> SparkSession:
        """A session of its own, with the settings that answers depend on."""
        made = spark.newSession()
        for name in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.shuffle.partitions"):
            made.conf.set(name, str(spark.conf.get(name)))
        return made

    def _show(self, relation: Stream | Table, content: DataFrame) -> None:
        content.createOrReplaceTempView(relation.name)

    def _define(self, name: str) -> None:
        """Makes the view known under its name; views that it reads first."""
        view = self._pending.pop(name, None)
        while view is not None:
            try:
                asked = self._asked[view.name] = frame_of(self._spark, view)
                self._views[view.name] = self._times.complete(asked, view, self._complete)
                self._times.learn(view, self._views[view.name]._jdf.queryExecution().analyzed())
                self._times.opened(view, self._views[view.name])
                self._views[view.name].createOrReplaceTempView(view.name)
                return
            except AnalysisException as error:
                missing = str((error.getMessageParameters() or {}).get("relationName", "")).replace("`", "").lower()
                if missing not in self._pending:
                    raise refusal(view, error) from error
                self._define(missing)

    def rows(self, view: str) -> pa.Table:
        return nullable(self._views[view]).toArrow()

    def late(self, view: str) -> list[tuple[str, str]]:
        """The rows that came too late for the view, once for each window missed, and the records that came too late to
        correct it, once for each key: their relation, and the row as JSON.
        """
        declared = self._declared[view]
        frames = self._times.late(self._asked[view], declared) if declared.options.late != "drop" else []
        return [(row["relation"], row["row"]) for frame in frames for row in frame.toArrow().to_pylist()]

    def concerned(self, view: str) -> int:
        """How many rows of streams would have been corrected, had what corrects them not come too late."""
        found = self._times.concerned(self._asked[view], self._declared[view])
        return reduce(DataFrame.unionAll, found).distinct().count() if found else 0

    def schema(self, view: str) -> Schema:
        return schema_of(self._views[view]._jdf.schema())

    def unordered(self, view: str) -> frozenset[str]:
        """The view's columns with arrays whose order Spark leaves open."""
        return unordered_columns(door_of(self._spark), self._views[view]._jdf.queryExecution().optimizedPlan())


def nullable(frame: DataFrame) -> DataFrame:
    """The frame with NULL allowed everywhere: Arrow refuses a struct that is NULL and has a field that is not.

    A frame without structs stays as it is.
    """
    schema = StructType.fromJson(json.loads(frame._jdf.schema().asNullable().json()))
    if not any("struct<" in field.dataType.simpleString() for field in schema.fields):
        return frame
    return frame.select(*(sf.col(f"`{field.name.replace('`', '``')}`").cast(field.dataType) for field in schema.fields))


def folded(relation: Stream | Table, records: DataFrame) -> DataFrame:
    """The relation's content: what its records amount to."""
    columns = columns_of(relation)
    if isinstance(relation, Stream):
        return records.select(*columns)
    if relation.key:
        newest = Window.partitionBy(*relation.key).orderBy(sf.desc("_place"))
        ranked = records.select(*columns, "_deleted", sf.row_number().over(newest).alias("_rank"))
        return ranked.where("_rank = 1 AND NOT _deleted").select(*columns)
    return _bag(columns, records)


def _bag(columns: list[Column], records: DataFrame) -> DataFrame:
    """Each row as often as it was added and not taken away; a deletion that finds none takes nothing away.

    With S the running sum of +1 and -1 in the order of places, the count is S less the lowest point that S reached
    below zero. Spark has no order of maps: their entries stand for them, in the order in which they came.
    """
    fields = records.select(*columns).schema.fields
    entries, whole = (_of_maps(make, columns, fields) for make in (sf.map_entries, sf.map_from_entries))
    order = Window.partitionBy(*columns).orderBy("_place")
    weighted = records.select(*entries, "_place", sf.expr("IF(_deleted, -1, 1)").alias("_weight"))
    running = weighted.withColumn("_sum", sf.sum("_weight").over(order))
    counted = running.groupBy(*columns).agg(sf.sum("_weight").alias("_total"), sf.min("_sum").alias("_low"))
    times = counted.withColumn("_times", sf.expr("_total - least(_low, 0)")).where("_times > 0")
    return times.withColumn("_each", sf.explode(sf.expr("sequence(1, _times)"))).select(*whole)


def _of_maps(make: Callable[[Column], Column], columns: list[Column], fields: list[StructField]) -> list[Column]:
    return [
        make(column).alias(field.name) if isinstance(field.dataType, MapType) else column
        for column, field in zip(columns, fields, strict=True)
    ]


def compared(expected: pa.Table, found: pa.Table, *, unordered: Collection[str] = ()) -> Difference:
    """What `found` lacks and what it has too much; arrays in the `unordered` columns are equal in any order."""
    try:
        want, have = _counted(expected, unordered=unordered), _counted(found, unordered=unordered)
    except (ValueError, OverflowError):  # times that Python does not have
        want, have = (_counted(_numbers(each), unordered=unordered) for each in (expected, found))
    return Difference(tuple((want - have).elements()), tuple((have - want).elements()))


def _numbers(table: pa.Table) -> pa.Table:
    """The table with its times as numbers."""
    columns = [c.cast(f"int{c.type.bit_width}") if pa.types.is_temporal(c.type) else c for c in table.columns]
    return pa.table(columns, names=table.column_names)


def _counted(table: pa.Table, *, unordered: Collection[str]) -> Counter[Row]:
    rows: Iterable[Mapping[str, Any]] = table.to_pylist()
    return Counter(tuple(plain(value, unordered=name in unordered) for name, value in row.items()) for row in rows)


def plain(value: Any, *, unordered: bool = False) -> Any:
    """A value that can be counted: equal where Spark says equal (NaN is NaN, -0.0 is 0.0), nested ones as tuples."""
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    if isinstance(value, dict):
        return tuple((name, plain(each, unordered=unordered)) for name, each in value.items())
    if isinstance(value, list | tuple):
        items = [plain(each, unordered=unordered) for each in value]
        return tuple(sorted(items, key=repr)) if unordered else tuple(items)
    if isinstance(value, datetime | date | Decimal | str | bytes | int | None):
        return value
    return str(value)
