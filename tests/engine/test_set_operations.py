"""Set operations of DataFrames, in views that are functions: equal to Spark batch, whatever comes and leaves."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from penstock.engine.compile import compiled
from penstock.log import Record
from penstock.model import Function, Pipeline, View, pipeline_of
from tests.engine.conftest import Bench
from tests.texts import refused

RELATIONS = """
    CREATE TABLE l (id BIGINT PRIMARY KEY, k STRING, v BIGINT);
    CREATE TABLE r (v BIGINT, k STRING);
    CREATE STREAM s (k STRING, note STRING, at TIMESTAMP) WITH (event_time = 'at');
"""
pytestmark = pytest.mark.spark


def left(spark: SparkSession) -> DataFrame:
    return spark.table("l").select("k", "v")


def right(spark: SparkSession) -> DataFrame:
    """The columns stand the other way round."""
    return spark.table("r")


def same(spark: SparkSession) -> DataFrame:
    return right(spark).select("k", "v")


def noted(spark: SparkSession) -> DataFrame:
    return spark.table("s").select("note", "k")


VIEWS: Mapping[str, Callable[[SparkSession], DataFrame]] = {
    "united": lambda spark: left(spark).union(same(spark)),
    "united_all": lambda spark: left(spark).unionAll(noted(spark).select("k", sf.length("note"))),
    "by_name": lambda spark: left(spark).unionByName(right(spark)),
    "by_some_names": lambda spark: left(spark).unionByName(noted(spark), allowMissingColumns=True),
    "shared": lambda spark: left(spark).intersect(same(spark)),
    "shared_all": lambda spark: left(spark).intersectAll(same(spark)),
    "rest_all": lambda spark: left(spark).exceptAll(same(spark)),
    "rest": lambda spark: left(spark).subtract(same(spark)),
    "notes": lambda spark: noted(spark).distinct(),
    "once": lambda spark: left(spark).dropDuplicates(),
    # Of rows with the same k and v there is one w.
    "once_by": lambda spark: left(spark).withColumn("w", sf.expr("concat(k, v)")).dropDuplicates(["k", "v"]),
    "nested": lambda spark: left(spark).intersectAll(same(spark)).unionByName(right(spark)).subtract(left(spark)),
}


class Sets(Bench):
    def declared(self, options: Mapping[str, Any]) -> Pipeline:
        made = pipeline_of(self._sql, name="test", options=options)
        return replace(made, views=tuple(View(name, Function(call)) for name, call in VIEWS.items()))


class Story:
    """Rows of few values, some of them NULL, that come, change and leave."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._ids: set[int] = set()
        self._rows: list[dict[str, Any]] = []

    def frame(self) -> dict[str, list[Any]]:
        return {"l": self._left(), "r": self._right(), "s": [self._row("note") for _ in range(3)]}

    def _row(self, column: str = "v") -> dict[str, Any]:
        value = self._random.choice([None, 1, 2])
        text = None if value is None else "n" * value
        return {"k": self._random.choice([None, "a", "b"]), column: text if column == "note" else value}

    def _left(self) -> list[Any]:
        gone = [i for i in sorted(self._ids) if self._random.random() < 0.3]
        came = [self._random.randrange(9) for _ in range(5)]
        self._ids = (self._ids - set(gone)) | set(came)
        return [*(Record({"id": i}, deleted=True) for i in gone), *({"id": i, **self._row()} for i in came)]

    def _right(self) -> list[Any]:
        gone = [self._rows.pop(self._random.randrange(len(self._rows))) for _ in range(len(self._rows) // 3)]
        came = [self._row() for _ in range(4)]
        self._rows += came
        return [*(Record(row, deleted=True) for row in gone), *came]


def test_set_operations_of_dataframes_equal_batch(spark: SparkSession, tmp_path: Path) -> None:
    made, story, seen = Sets(spark, tmp_path, RELATIONS), Story(3), set[str]()
    for number in range(4):
        if number == 2:
            made.start()
        made.append(story.frame())
        made.drain()
        made.check()
        seen |= {view for view in VIEWS if made.content(view)}
    assert (made.checked, seen) == (4, set(VIEWS))
    made.log.close()


def test_duplicates_within_a_watermark_are_refused_with_what_to_write(spark: SparkSession) -> None:
    def once(spark: SparkSession) -> DataFrame:
        return spark.table("s").withWatermark("at", "1 hour").dropDuplicatesWithinWatermark(["k"])

    pipeline = replace(pipeline_of(RELATIONS, name="test"), views=(View("once", Function(once)),))
    with refused("engine/refused-duplicates-within-a-watermark"):
        compiled(spark.newSession(), pipeline)
