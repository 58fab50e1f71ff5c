"""Declarations in Python: `ps.stream`, `ps.table`, `ps.view`, `ps.option`.

While a pipeline is being loaded, what is declared belongs to it. At any other time a declaration is only made and
returned, so that it can be tried out. Options have the words and the errors that they have in SQL.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack, overload

from penstock.errors import ModelError, SchemaError, Spot
from penstock.log.standing import By
from penstock.model.build import Declared, stream_of, table_of, view_of
from penstock.model.options import Given, options_read, placed
from penstock.model.relation import Stream, Table, ValueFormat
from penstock.model.script import caller
from penstock.model.view import Emit, Function, Late, Store
from penstock.schema import Schema, parse_schema

Query = TypeVar("Query", bound=Callable[[Any], Any])
AnyDeclared = TypeVar("AnyDeclared", bound=Declared)
_draft: ContextVar[list[Declared] | None] = ContextVar("penstock_draft", default=None)


class StreamWords(TypedDict, total=False):
    """The options of a stream."""

    event_time: str | None
    watermark: str | timedelta | None
    watermark_by: By
    idle: str | timedelta | None
    plausible: str | timedelta
    retain: str | timedelta | None
    partitions: int
    topic: str | None
    value_format: ValueFormat


class TableWords(TypedDict, total=False):
    """The options of a table, and its key: one column, several, or none for a bag of rows."""

    key: str | Sequence[str] | None
    event_time: str | None
    history: str | None
    watermark: str | timedelta | None
    partitions: int
    topic: str | None
    value_format: ValueFormat


class ViewWords(TypedDict, total=False):
    """The options of a view, and its name where it is not that of the function."""

    name: str
    store: Store
    key: str | Sequence[str] | None
    emit: Emit
    late: Late
    allowed_lateness: str | timedelta
    late_alert: str
    retain: str | timedelta | None
    partition_by: str | Sequence[str] | None
    index: str | Sequence[str | Sequence[str]]
    webhook: str
    webhook_secrets: str | Path
    webhook_attempts: int
    email: str | Sequence[str]
    email_every: str | timedelta
    kafka: str


def stream(name: str, schema: str | Schema, **options: Unpack[StreamWords]) -> Stream:
    """A stream: `stream("orders", "id BIGINT, at TIMESTAMP", event_time="at", watermark="10 seconds")`."""
    spot = caller()
    return _collected(stream_of(name, _schema(schema, spot), _given(options, spot), spot=spot))


def table(name: str, schema: str | Schema, **options: Unpack[TableWords]) -> Table:
    """A table: `table("customers", "id BIGINT, city STRING", key="id")`."""
    spot = caller()
    key = options.pop("key", None) or ()
    names = (key,) if isinstance(key, str) else tuple(key)
    return _collected(table_of(name, _schema(schema, spot), _given(options, spot), key=names, spot=spot, key_spot=spot))


@overload
def view(function: Query, /) -> Query: ...
@overload
def view(**options: Unpack[ViewWords]) -> Callable[[Query], Query]: ...
def view(function: Any = None, /, **options: Any) -> Any:
    """A view, over a function from the Spark session to a DataFrame: `@view`, or `@view(store="topic")`.

    The function stays what it is and can be called with any Spark session.
    """
    spot = caller()
    name = options.pop("name", None)

    def declared(function: Query) -> Query:
        with placed(spot):
            query = Function(function, spot)
        _collected(view_of(name or query.name, query, _given(options, spot), spot=spot))
        return function

    return declared if function is None else declared(function)


def option(name: str, value: str | float | timedelta | Path) -> None:
    """An option of the pipeline: `option("ansi", True)`, `option("spark.sql.caseSensitive", "false")`."""
    spot = caller()
    given = Given(name, value, spot, spot)
    options_read("pipeline", [given])
    _collected(given)


@contextmanager
def drafting(draft: list[Declared]) -> Iterator[None]:
    """What is declared inside is added to the draft."""
    token = _draft.set(draft)
    try:
        yield
    finally:
        _draft.reset(token)


def _collected(declared: AnyDeclared) -> AnyDeclared:
    draft = _draft.get()
    if draft is not None:
        draft.append(declared)
    return declared


def _given(options: Mapping[str, object], spot: Spot) -> list[Given]:
    return [Given(word, value, spot, spot) for word, value in options.items() if value is not None]


def _schema(schema: str | Schema, spot: Spot) -> Schema:
    if isinstance(schema, Schema):
        return schema
    try:
        return parse_schema(schema)
    except SchemaError as error:
        key = "PRIMARY" in schema.upper().split()
        hint = 'A table\'s key is an argument: key="id".' if key else error.hint
        raise ModelError(error.primary, detail=error.detail, hint=hint, spot=spot) from None
