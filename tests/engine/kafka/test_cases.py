"""The kernel reads messages as Python does, and refuses the same with the same words."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.engine.source import read_topic
from penstock.log.topic import EventTime, Topic
from penstock.schema import Column, Schema
from tests.engine.kafka.conftest import Topics
from tests.engine.kafka.mirrors import Mirror, Run
from tests.log.kafka.cases import MESSAGES, WIDE, Bad, Case, damaged
from tests.log.kafka.test_cases import read, text_of

NAMES = [topic.name for topic in MESSAGES]


def send(topics: Topics, mirror: Mirror, topic: Topic, cases: Sequence[Case]) -> None:
    topics.make(topic.name)
    time = EventTime(topic.event_time, corrected=topic.corrected) if topic.event_time and not topic.raw else None
    mirror.declare(
        topic.name, None if topic.raw else str(topic.schema), key=topic.key, event_time=time, values=topic.values
    )
    for case in cases:
        topics.send(topic.name, case.value, key=case.key, headers=list(case.headers))
    topics.flush()
    mirror.frame(Run(topic.name, 0, 0, len(cases)))


def rows(spark: SparkSession, mirror: Mirror, topic: Topic) -> list[dict[str, Any]]:
    names = [f"`{name}`" for name in topic.schema.names]
    hidden = "_offset", "_bad", "_key", "_value", "_deleted", "_headers", *(() if topic.raw else ("_replaces",))
    found = read_topic(spark, mirror.folder, topic.name).select(*names, *hidden).toArrow().to_pylist()
    return sorted(found, key=lambda row: row["_offset"])


@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_reads_what_python_reads(name: str, spark: SparkSession, topics: Topics, mirror: Mirror) -> None:
    topic = next(each for each in MESSAGES if each.name == name)
    cases = MESSAGES[topic]
    send(topics, mirror, topic, cases)
    for row, case in zip(rows(spark, mirror, topic), cases, strict=True):
        if isinstance(case.want, Bad):
            assert (row["_bad"], row["_key"], row["_value"]) == (case.want.reason, case.key, case.value)
            nullable = [each.name for each in topic.schema.columns if each.nullable or each.name not in topic.key]
            assert not any(row[each] is not None for each in nullable)
        else:
            want = dict.fromkeys(topic.schema.names) | case.want
            found = {each: row[each] for each in topic.schema.names}
            assert (row["_bad"], text_of(found), row["_deleted"]) == (None, text_of(want), case.deleted)
            others = {key: value or b"" for key, value in case.headers if not key.startswith("penstock.")}
            assert dict(row["_headers"] or ()) == others
            assert topic.raw or row["_replaces"] == case.replaces


def test_the_kernel_reads_damaged_messages_as_python_does(spark: SparkSession, topics: Topics, mirror: Mirror) -> None:
    cases = [Case(value, None) for value in damaged(4000, seed=8)]
    send(topics, mirror, WIDE, cases)
    outcomes = set()
    for row, case in zip(rows(spark, mirror, WIDE), cases, strict=True):
        want, _, _ = read(WIDE, case)
        found = Bad(row["_bad"]) if row["_bad"] is not None else {each: row[each] for each in WIDE.schema.names}
        assert text_of(found) == text_of(want), case.value
        outcomes.add(type(found))
    assert outcomes == {Bad, dict}


def test_a_record_is_bad_whatever_columns_are_read(spark: SparkSession, topics: Topics, mirror: Mirror) -> None:
    cases = [Case(b'{"c3": 1, "c10": "a"}', None), Case(b'{"c3": 2, "c10": 7}', None), Case(b'{"c3": 3}', None)]
    send(topics, mirror, WIDE, cases)
    table = read_topic(spark, mirror.folder, "wide")
    assert sorted(row.c3 for row in table.select("c3").collect()) == [1, 3]
    assert table.count() == 2
    bad = table.where("_bad IS NOT NULL").select("_offset", "_value").collect()
    assert [tuple(row) for row in bad] == [(1, bytearray(b'{"c3": 2, "c10": 7}'))]


def test_columns_that_came_later_are_null_in_older_messages(
    spark: SparkSession, topics: Topics, mirror: Mirror
) -> None:
    plain = next(each for each in MESSAGES if each.name == "plain")
    send(topics, mirror, plain, [Case(b'{"id": 1}', None)])
    grown = Schema((*plain.schema.columns, Column("age", WIDE.schema.column("c3").type)))
    mirror.grow("plain", str(grown))
    topics.send("plain", b'{"id": 2, "age": 7}')
    topics.flush()
    mirror.frame(Run("plain", 0, 1, 2))
    found = replace(plain, schemas=(plain.schema, grown))
    assert [(row["id"], row["age"]) for row in rows(spark, mirror, found)] == [(1, None), (2, 7)]
