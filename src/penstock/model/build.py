"""Declarations become values, the same from SQL and from Python, and errors get their place.

A pipeline is drafted as a list, file by file; `pipeline_from` makes it whole. In the list a `Given` is an option of the
pipeline.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.errors import ModelError, Spot
from penstock.model.correction import correction_read
from penstock.model.options import Given, option_named, options_read, placed
from penstock.model.pipeline import Pipeline, PipelineOptions
from penstock.model.relation import Stream, Table, keyed, spelled, with_history
from penstock.model.view import Function, Sql, View, ViewOptions
from penstock.schema import Column, Scalar, Schema

Declared = Stream | Table | View | Given


def stream_of(name: str, schema: Schema, given: Sequence[Given], *, spot: Spot | None) -> Stream:
    values = options_read("stream", given)
    with placed(spot, _value_spots(given)):
        made, values = _corrected(schema, values)
        return Stream(name, made, spot=spot, **_spelled(made, values))


def table_of(
    name: str,
    schema: Schema,
    given: Sequence[Given],
    *,
    key: Sequence[str],
    spot: Spot | None,
    key_spot: Spot | None,
) -> Table:
    values = _spelled(schema, options_read("table", given))
    names = tuple(spelled(schema, column) for column in key)
    with placed(spot, {**_value_spots(given), "key": key_spot}):
        return Table(name, keyed(schema, names), names, spot=spot, **values)


def view_of(name: str, query: Sql | Function, given: Sequence[Given], *, spot: Spot | None) -> View:
    values = options_read("view", given)
    spots = _value_spots(given)
    with placed(spot, spots):
        parts = [spots.get(word) for word in ("key", "partition_by", "index")]
        return View(name, query, ViewOptions(**values), spot, *parts)


def pipeline_from(draft: Sequence[Declared], *, name: str, folder: Path) -> Pipeline:
    declared = [each for each in draft if isinstance(each, Stream | Table)]
    relations = tuple(relation for each in declared for relation in with_history(each))
    views = tuple(each for each in draft if isinstance(each, View))
    given = [each for each in draft if isinstance(each, Given)]
    return Pipeline(name, folder, relations, views, _options_of(given))


def _options_of(given: Sequence[Given]) -> PipelineOptions:
    values = options_read("pipeline", given)
    spark = {word: values.pop(word) for word in list(values) if word.startswith("spark.")}
    with placed(None, _value_spots(given)):
        return PipelineOptions(spark=spark, **values)


def _value_spots(given: Sequence[Given]) -> Mapping[str, Spot | None]:
    return {option_named(each.word): each.value_spot for each in given}


def _corrected(schema: Schema, values: dict[str, Any]) -> tuple[Schema, dict[str, Any]]:
    """Where the event time is corrected, the schema with a column more."""
    found = correction_read(values["event_time"]) if "event_time" in values else None
    if found is None:
        return schema, values
    correction, name = found
    columns = [spelled(schema, column) for column in correction.columns]
    if spelled(schema, name) in schema.names:
        raise ModelError(
            f'column "{name}" is there already',
            hint="Give the corrected time a name of its own: corrected(...) AS at",
            about="event_time",
        )
    known = next((column for column in schema.columns if column.name == columns[0]), None)
    more = Column(name, known.type if known else Scalar("TIMESTAMP"), nullable=True)
    made = replace(correction, occurred=columns[0], sent=columns[1], received=columns[2])
    return Schema((*schema.columns, more)), {**values, "event_time": name, "corrected": made}


def _spelled(schema: Schema, values: dict[str, Any]) -> dict[str, Any]:
    """Columns are named regardless of case, as in Spark; values keep the schema's own spelling."""
    if "event_time" in values:
        values["event_time"] = spelled(schema, values["event_time"])
    return values
