"""Topics of a log as Spark DataFrames, in batch and streaming; its records may lie in Kafka.

Both have the topic's newest columns; the hidden ones (`_partition`, `_offset`, `_appended_at`, `_place`,
`_watermark`, `_deleted`, `_replaces`, `_headers`, and `_bad`, `_key`, `_value` of records that could not be read)
appear when they are named. Records that could not be read are left out unless `_bad`, the reason, is named. A batch
reads what is committed when it is planned. All streams of one query advance together, from one frame of the log to
another.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict, Unpack

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from penstock.engine.kafka import enable_kafka
from penstock.engine.timing import others_of
from penstock.log import Place
from penstock.log.standing import By
from penstock.model import History, Pipeline, Stream, Table

FORMAT = "penstock"
NO_TIME = -(2**63)
"""What a watermark is where there is none yet."""


class Range(TypedDict, total=False):
    """Which part of a topic: from the first frame, place or offset on, up to but without the second; all if left out.

    Where several are given, only the records that are in all of them. A place lies anywhere in a frame.
    """

    from_frame: int
    until_frame: int
    from_place: Place | int
    until_place: Place | int
    from_offsets: Mapping[int, int]
    until_offsets: Mapping[int, int]
    watermark: timedelta
    watermark_by: By
    scope: str
    relation: str
    known: Mapping[str, str]
    streams: Mapping[str, Mapping[str, str]]


class Following(TypedDict, total=False):
    """How a topic is followed."""

    watermark: timedelta | None
    watermark_by: By
    max_records_per_batch: int | None
    max_frames_per_batch: int | None
    starting_frame: int | None
    scope: str
    streams: Mapping[str, Mapping[str, str]]


def read_topic(spark: SparkSession, log_path: str | Path, topic: str, **within: Unpack[Range]) -> DataFrame:
    """The topic's records as they are committed now.

    `watermark` is the delay behind the largest event time that `_watermark` has, of all records or, by `watermark_by`,
    of the partition or producer that is least far; `scope` says whose punctuation counts, besides that for everybody.
    `relation` is what the topic is called in queries, and `known` what the planner is told of it besides.
    `streams` are others whose watermarks are hidden columns too, with their own options.
    """
    options = {
        **within.get("known", {}),
        "relation": within.get("relation"),
        "fromFrame": within.get("from_frame"),
        "untilFrame": within.get("until_frame"),
        "fromPlace": _place(within.get("from_place")),
        "untilPlace": _place(within.get("until_place")),
        "fromOffsets": _offsets(within.get("from_offsets")),
        "untilOffsets": _offsets(within.get("until_offsets")),
        "watermark": _duration(within.get("watermark")),
        "watermarkBy": within.get("watermark_by"),
        "scope": within.get("scope"),
        "streams": json.dumps(within["streams"]) if within.get("streams") else None,
    }
    enable_kafka(spark, log_path)
    return spark.read.format(FORMAT).options(path=str(log_path), topic=topic, **_given(options)).load()


def stream_topic(spark: SparkSession, log_path: str | Path, topic: str, **how: Unpack[Following]) -> DataFrame:
    """The topic's records as they come, from the first one on.

    `max_records_per_batch` limits the records of all the query's topics together, and `max_frames_per_batch` the
    frames with any of them; a frame is never divided.
    `starting_frame` is where a query begins that has no checkpoint yet; all its topics should begin at the same.
    """
    options = {
        "watermark": _duration(how.get("watermark")),
        "watermarkBy": how.get("watermark_by"),
        "maxRecordsPerBatch": how.get("max_records_per_batch"),
        "maxFramesPerBatch": how.get("max_frames_per_batch"),
        "startingFrame": how.get("starting_frame"),
        "scope": how.get("scope"),
        "streams": json.dumps(how["streams"]) if how.get("streams") else None,
    }
    enable_kafka(spark, log_path)
    return spark.readStream.format(FORMAT).options(path=str(log_path), topic=topic, **_given(options)).load()


def other_streams(relation: Stream | Table, pipeline: Pipeline) -> dict[str, dict[str, str]]:
    """The streams whose watermarks count for rows of this one where they meet, each with its options."""
    return _watermarks(pipeline, others_of(relation, pipeline.relations))


def all_streams(relation: Stream | Table, pipeline: Pipeline) -> dict[str, dict[str, str]]:
    """All other streams that have watermarks, each with its options."""
    timed = [each.name for each in pipeline.relations if isinstance(each, Stream) and each.event_time]
    return _watermarks(pipeline, [name for name in timed if name != relation.name])


def _watermarks(pipeline: Pipeline, names: Sequence[str]) -> dict[str, dict[str, str]]:
    streams = {each.name: each for each in pipeline.relations if isinstance(each, Stream)}
    return {
        name: _given(
            {
                "topic": streams[name].topic,
                "watermark": _duration(streams[name].watermark),
                "watermarkBy": streams[name].watermark_by,
            }
        )
        for name in names
    }


def watermark_at(spark: SparkSession, log_path: str | Path, topic: str, frame: int, **how: Unpack[Range]) -> int:
    """How far the watermark of a topic has come before a frame, in microseconds; the least number if it has none."""
    options = _given(
        {
            "watermark": _duration(how.get("watermark")),
            "watermarkBy": how.get("watermark_by"),
            "scope": how.get("scope"),
        }
    )
    made = spark._jvm.java.util.HashMap()  # type: ignore[union-attr]
    for name, value in {**options, "path": str(log_path), "topic": topic}.items():
        made.put(name, value)
    return int(spark._jvm.org.apache.spark.sql.penstock.Door.watermark(made, frame))  # type: ignore[union-attr]


def columns_of(relation: Stream | Table) -> list[Column]:
    """The relation's columns, of its topic's records; those of a history say of each whether it is a deletion."""
    if not isinstance(relation, History):
        return [sf.col(f"`{name}`") for name in relation.schema.names]
    *own, deleted = relation.schema.names
    return [*(sf.col(f"`{name}`") for name in own), sf.col("_deleted").alias(deleted)]


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _place(place: Place | int | None) -> int | None:
    return None if place is None else int(place)


def _offsets(offsets: Mapping[int, int] | None) -> str | None:
    return None if offsets is None else json.dumps({str(partition): at for partition, at in offsets.items()})


def _duration(delay: timedelta | None) -> str | None:
    return None if delay is None else f"{delay // timedelta(microseconds=1)} microseconds"
