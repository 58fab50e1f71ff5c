"""Values survive PostgreSQL, whatever their type, and are there what a reader expects."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.schema import Column, Schema, Type, arrow_schema, parse_schema, parse_type
from penstock.views import Lineage, Position, Step
from penstock.views.postgres import PostgresStore, rows_in
from penstock.views.postgres.texts import escaped, plain
from penstock.views.step import Change, View
from services.postgres import Server
from tests.effort import examples
from tests.views.postgres import asked, new_schema
from tests.views.test_values import TYPES, array_of, same, values_of

FAR = -(2**62)
DAY = 86_400_000_000


def kept(server: Server, types: Sequence[Type], arrays: Sequence[pa.Array], *, key: tuple[str, ...] = ()) -> str:
    """The schema in which the view `v` has these columns, x0 and so on."""
    declared = Schema(tuple(Column(f"x{at}", type_) for at, type_ in enumerate(types)))
    rows = pa.StructArray.from_arrays(arrays, fields=list(arrow_schema(declared)))
    view, schema = View("v", declared, key), new_schema()
    steps = [Step(Position("log", 1, 5), (Change("v", pa.nulls(len(rows), rows.type), rows),))]
    with PostgresStore(server.url(), schema) as store:
        store.switch(Lineage("p", 1, 5, (view,)), steps)
    return schema


def through(server: Server, types: Sequence[Type], arrays: Sequence[pa.Array]) -> list[pa.Array]:
    """The columns as they come back, in the order in which they were sent."""
    numbered = [*arrays, pa.array(range(len(arrays[0])), pa.int32())]
    schema = kept(server, [*types, parse_type("INT")], numbered)
    _, _, pieces = rows_in(server.url(), schema, "v")
    if not pieces:
        return [each.slice(0, 0) for each in arrays]
    table = pa.Table.from_struct_array(pa.chunked_array(pieces)).sort_by(f"x{len(types)}").combine_chunks()
    return [column.chunk(0) for column in table.columns[:-1]]


CASES = st.lists(TYPES, min_size=1, max_size=6).flatmap(
    lambda types: st.tuples(st.just(types), st.lists(st.tuples(*map(values_of, types)), min_size=1, max_size=5))
)


@given(CASES)
@settings(parent=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_every_value_of_every_type_comes_back(postgres: Server, case: tuple[list[Type], list[tuple[Any, ...]]]) -> None:
    types, rows = case
    arrays = [array_of(type_, column) for type_, column in zip(types, zip(*rows, strict=True), strict=True)]
    for found, array in zip(through(postgres, types, arrays), arrays, strict=True):
        assert same(found, array)


def test_far_times_are_infinite_there_and_come_back_as_they_were(postgres: Server) -> None:
    types = parse_schema("a TIMESTAMP, b TIMESTAMP_NTZ, c DATE")
    times = [FAR, FAR + 1, -210_866_803_200_000_001, -210_866_803_200_000_000, 2**63 - 1, -(2**63), None]
    days = [-(2**31), 2**31 - 1, -2_440_589, -2_440_588, 2_145_042_905, 2_145_042_906, None]
    arrays = [array_of(c.type, v) for c, v in zip(types.columns, (times, times, days), strict=True)]
    kinds = [column.type for column in types.columns]
    schema = kept(postgres, kinds, arrays, key=("x0",))  # each is a key of its own, also where they look the same
    found = asked(postgres, f'SELECT x0::text, x1::text, x2::text FROM "{schema}".v')
    assert [row[0] == "-infinity" for row in found] == [True, True, True, False, False, True, False]
    assert [row[1] == "-infinity" for row in found] == [True, True, True, False, False, True, False]
    assert [row[2] for row in found] == [
        "-infinity", "infinity", "-infinity", "4714-11-24 BC", "5874897-12-31", "infinity", None,
    ]  # fmt: skip
    for one, other in zip(through(postgres, kinds, arrays), arrays, strict=True):
        assert same(one, other)


def test_strings_of_any_bytes_come_back(postgres: Server) -> None:
    data = [b"plain", b"a\0b", b"\xff\xfe", "\ufdd0".encode(), "\ufdd000".encode(), b"\xef\xb7", b"", None]
    array = pa.array(data, pa.binary()).view(pa.string())
    (found,) = through(postgres, [parse_type("STRING")], [array])
    assert found.cast(pa.binary()).to_pylist() == data
    inner = pa.ListArray.from_arrays(pa.array([0, len(data)], pa.int32()), array)
    (nested,) = through(postgres, [parse_type("ARRAY<STRING>")], [inner])
    assert nested.flatten().cast(pa.binary()).to_pylist() == data


@given(st.binary())
def test_texts_hold_any_string(data: bytes) -> None:
    text = data.decode(errors="surrogateescape")
    assert plain(escaped(text)) == text
    assert "\0" not in escaped(text)
    escaped(text).encode()  # raises where it is not UTF-8


@pytest.mark.parametrize(
    ("type_", "value", "asks", "answer"),
    [
        ("DECIMAL(38,10)", "12345678901234567890123.0000000001", "x0 + 1", "12345678901234567890124.0000000001"),
        ("MAP<STRING, INT>", [("b", 1), ("a", 2)], "x0->'a'", "2"),
        ("STRUCT<n: INT, t: ARRAY<STRING>>", {"n": 1, "t": ["x"]}, "x0#>>'{t,0}'", "x"),
        ("BINARY", b"\x00\xff", "x0", "\\x00ff"),
        ("BOOLEAN", True, "NOT x0", "false"),
        ("TINYINT", -128, "x0 - 1", "-129"),
        ("TIMESTAMP", 0, "x0 AT TIME ZONE 'UTC'", "1970-01-01 00:00:00"),
    ],
)  # fmt: skip
def test_values_are_of_the_type_that_postgresql_has(
    postgres: Server, type_: str, value: Any, asks: str, answer: str
) -> None:
    kind = parse_type(type_)
    plain = pa.array([value]).cast(pa.decimal128(38, 10)) if type_.startswith("DEC") else None
    array = plain if plain is not None else array_of(kind, [value if not isinstance(value, dict) else (1, ["x"])])
    schema = kept(postgres, [kind], [array])
    assert asked(postgres, f'SELECT ({asks})::text FROM "{schema}".v') == [(answer,)]


def test_texts_sort_as_in_spark(postgres: Server) -> None:
    schema = kept(postgres, [parse_type("STRING")], [pa.array(["b", "B", "a", "ä", "Z"])])
    found = asked(postgres, f'SELECT x0 FROM "{schema}".v ORDER BY x0')
    assert [text for (text,) in found] == ["B", "Z", "a", "b", "ä"]
