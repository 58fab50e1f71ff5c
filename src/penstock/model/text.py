"""The declarations of a pipeline as one SQL text: the same for equal pipelines, in every process.

Statements are ordered by kind and name, options by name, and what has its default value is left out. Reading the text
gives the same declarations again; of a view in Python only the function's name can be told.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, assert_never

from penstock.model.correction import correction_text
from penstock.model.duration import duration_text
from penstock.model.pipeline import Pipeline, PipelineOptions
from penstock.model.relation import History, Relation, Stream, Table
from penstock.model.scanner import Source, string_text, tokens
from penstock.model.sinks import KafkaTopic, Smtp, Webhook
from penstock.model.stores import OnPostgres, OnRedis, OnServer
from penstock.model.view import Function, Sql, View, ViewOptions
from penstock.schema import quoted

# Those of the pipeline's options that can change an answer, beside spark.sql.*
MEANING = ("ansi", "time_zone", "shuffle_partitions")
SINKS = ("webhook", "webhook_secrets", "webhook_attempts", "email", "email_every", "kafka")
TIMING = ("emit", "late", "allowed_lateness", "retain")
"""What answers depend on."""


def declaration_text(pipeline: Pipeline, *, meaning_only: bool = False) -> str:
    """The text; with `meaning_only` without what changes no answer.

    That is options like the size of batches, and white space and comments in queries.
    """
    return "\n".join(f"{statement};" for statement in _statements(pipeline, meaning_only=meaning_only)) + "\n"


def _statements(pipeline: Pipeline, *, meaning_only: bool) -> Iterator[str]:
    for word, value in sorted(_option_values(pipeline.options).items()):
        if not meaning_only or word in MEANING or word.startswith("spark.sql."):
            yield f"SET {string_text(word) if '.' in word else word} = {_value_text(value)}"
    declared = [each for each in pipeline.relations if not isinstance(each, History)]
    for relation in sorted(declared, key=lambda each: each.name.lower()):
        yield _relation_text(relation, meaning_only=meaning_only)
    for view in sorted(pipeline.views, key=lambda each: each.name.lower()):
        yield _view_text(view, meaning_only=meaning_only)


def _relation_text(relation: Relation, *, meaning_only: bool) -> str:
    columns = str(relation.given)
    given = {"event_time": relation.event_time, "partitions": relation.partitions if relation.partitions > 1 else None}
    given["topic"] = relation.topic if relation.topic != relation.name else None
    # How bytes are written in Kafka changes no answer.
    given["value_format"] = None if meaning_only or relation.value_format == "json" else relation.value_format
    match relation:
        case Stream():
            return f"CREATE STREAM {relation.name} ({columns})" + _with(
                {**given, **_marks(relation, meaning_only=meaning_only)}
            )
        case Table():
            key = f", PRIMARY KEY ({', '.join(map(quoted, relation.key))})" if relation.key else ""
            versions = {"history": relation.history, "watermark": relation.watermark}
            return f"CREATE TABLE {relation.name} ({columns}{key})" + _with({**given, **versions})
        case _:
            assert_never(relation)


def _marks(stream: Stream, *, meaning_only: bool) -> dict[str, Any]:
    """How its watermark goes on, and how long its rows are corrected; who is idle is a matter of the log, not of the
    answer.
    """
    given: dict[str, Any] = {"watermark": stream.watermark, "retain": stream.retain}
    given["idle"] = None if meaning_only else stream.idle
    given["watermark_by"] = stream.watermark_by if stream.watermark_by != Stream.watermark_by else None
    if stream.corrected is not None:
        given["event_time"] = correction_text(stream.corrected, str(stream.event_time))
    given["plausible"] = stream.plausible if stream.plausible != Stream.plausible else None
    return given


def _view_text(view: View, *, meaning_only: bool) -> str:
    store = view.options.store
    lists = {"key": view.options.key, "partition_by": view.options.partition_by}
    given: dict[str, Any] = {word: ", ".join(map(quoted, names)) for word, names in lists.items() if names}
    given |= {"store": store if store != "table" else None}
    given |= {} if meaning_only else {"late_alert": view.options.late_alert, "index": _indexes(view.options.index)}
    words = TIMING if meaning_only else (*TIMING, *SINKS)
    given |= {word: value for word in words if (value := getattr(view.options, word)) != getattr(ViewOptions(), word)}
    return f"CREATE VIEW {view.name}{_with(given)} AS\n{_query_text(view.query, meaning_only=meaning_only)}"


def _indexes(index: tuple[tuple[str, ...], ...] | None) -> str | None:
    return "; ".join(", ".join(map(quoted, columns)) for columns in index) if index else None


def _query_text(query: Sql | Function, *, meaning_only: bool) -> str:
    match query:
        case Function():
            return f"PYTHON FUNCTION {query.name}"
        case Sql(text):
            return _one_line(text) if meaning_only else text
        case _:
            assert_never(query)


def _one_line(query: str) -> str:
    """One space for every gap between tokens: none is added, so that operators stay whole."""
    parts: list[str] = []
    end = 0
    for token in tokens(Source("query", query)):
        parts.append(" " + token.text if parts and token.start > end else token.text)
        end = token.end
    return "".join(parts)


def _option_values(options: PipelineOptions) -> Mapping[str, Any]:
    """The options that do not have their default value, Spark's among them."""
    default = PipelineOptions()
    ours = {each.name: getattr(options, each.name) for each in fields(options) if each.name != "spark"}
    changed = {word: value for word, value in ours.items() if value != getattr(default, word)}
    return {**changed, **options.spark}


def _with(given: Mapping[str, Any]) -> str:
    words = [f"{word} = {_value_text(value)}" for word, value in sorted(given.items()) if value is not None]
    return f" WITH ({', '.join(words)})" if words else ""


Value = str | int | timedelta | Path | Decimal | OnServer | Webhook | Smtp | KafkaTopic | tuple[str, ...]


def _value_text(value: Value) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case Decimal():
            return string_text(f"{value:f} %")
        case timedelta():
            return string_text(duration_text(value))
        case tuple():
            return string_text(", ".join(value))
        case str() | Path() | OnPostgres() | OnRedis() | Webhook() | Smtp() | KafkaTopic():
            return string_text(str(value))
        case _:
            assert_never(value)
