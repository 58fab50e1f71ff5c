"""The hash that chooses a partition is part of the format: the same for ever, equal for equal values, spread evenly."""

import math
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.log import Topic
from penstock.log.partition import byte_hashes, column_hashes, mixed, partitions_of
from penstock.schema import arrow_schema, parse_schema
from tests.effort import examples
from tests.texts import assert_golden

GOLDEN: list[tuple[str, list[Any]]] = [
    ("BOOLEAN", [False, True]),
    ("TINYINT", [0, 1, -1, -128, 127]),
    ("INT", [0, 1, -1, 2**31 - 1]),
    ("BIGINT", [0, 1, -1, -(2**63), 2**63 - 1]),
    ("FLOAT", [0.0, 0.5, -1.5, math.inf]),
    ("DOUBLE", [0.0, 0.1, -1.5, math.inf, math.nan]),
    ("DECIMAL(10,2)", [Decimal("0.00"), Decimal("1.50"), Decimal("-1.50")]),
    ("STRING", ["", "a", "b", "ab", "ba", "ä€😀", "x" * 100]),
    ("BINARY", [b"", b"\x00", b"\x00\x00", b"\xff"]),
    ("DATE", [date(1970, 1, 1), date(2026, 1, 1), date(1, 1, 1)]),
    ("TIMESTAMP", [datetime(1970, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 12, tzinfo=UTC)]),
    ("TIMESTAMP_NTZ", [datetime(1970, 1, 1), datetime(2026, 1, 1, 12)]),
    ("STRUCT<a: INT, b: STRING>", [{"a": 1, "b": "x"}, {"a": 1, "b": None}, {"a": None, "b": None}]),
    ("ARRAY<INT>", [[], [1], [1, 2], [2, 1], [None], [1, None, 2]]),
    ("ARRAY<STRUCT<a: ARRAY<STRING>>>", [[], [{"a": []}], [{"a": ["x"]}, None], [{"a": None}]]),
]


def batch_of(schema: str, rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=arrow_schema(parse_schema(schema)))


def chosen(schema: str, rows: list[dict[str, Any]], *, partitions: int, turn: int = 0) -> list[int]:
    declared = parse_schema(schema)
    topic = Topic("t", (declared,), partitions, declared.names)
    return [int(each) for each in partitions_of(topic, batch_of(schema, rows), turn=turn)]


def test_the_hash_of_every_type_is_the_one_in_the_format() -> None:
    lines = []
    for type_, values in GOLDEN:
        rows = [{"k": value} for value in [*values, None]]
        hashes = column_hashes(batch_of(f"k {type_}", rows).column(0))
        places = chosen(f"k {type_}", rows, partitions=1000)
        lines += [
            f"{type_} {row['k']!r:.40}: {found:016x}, {p} of 1000"
            for row, found, p in zip(rows, hashes, places, strict=True)
        ]
    assert_golden("log/hashes", "\n".join(lines))


def test_the_hash_of_a_key_of_several_columns_is_the_one_in_the_format() -> None:
    rows: list[dict[str, Any]] = [{"a": 1, "b": "x"}, {"a": 1, "b": None}, {"a": None, "b": "x"}, {"a": 2, "b": "x"}]
    assert chosen("a INT, b STRING", rows, partitions=1000) == [131, 533, 276, 199]


@pytest.mark.parametrize("type_", ["STRUCT<a: INT, b: STRING>", "ARRAY<INT>", "ARRAY<STRUCT<a: ARRAY<STRING>>>"])
def test_nested_keys_hash_alike_wherever_they_stand(type_: str) -> None:
    values = [*dict(GOLDEN)[type_], None]
    whole = batch_of(f"k {type_}", [{"k": value} for value in [*values, *reversed(values)]]).column(0)
    hashes = list(column_hashes(whole))
    assert hashes == [*hashes[: len(values)], *reversed(hashes[: len(values)])]
    assert list(column_hashes(whole.slice(2))) == hashes[2:]
    assert len(set(hashes)) == len(values)


def test_a_key_that_is_all_null_goes_where_the_turn_says() -> None:
    rows: list[dict[str, Any]] = [{"a": None, "b": None}, {"a": 1, "b": "x"}]
    first = chosen("a INT, b STRING", rows, partitions=7, turn=3)
    second = chosen("a INT, b STRING", rows, partitions=7, turn=11)
    assert (first[0], second[0]) == (3, 4) and first[1] == second[1]


def polynomial(data: bytes) -> int:
    """The hash of bytes, written plainly."""
    prime, total = 0x100000001B3, len(data) * 0x100000001B3
    for at, byte in enumerate(data):
        total += (byte + 1) * pow(prime, at + 1, 2**64)
    return total % 2**64


@examples(40)
@given(st.lists(st.binary(max_size=20) | st.none(), max_size=8), st.integers(0, 3))
def test_bytes_hash_as_the_plain_formula_says_also_in_a_slice(values: list[bytes | None], skip: int) -> None:
    array = pa.array(values, pa.binary()).slice(skip)
    assert [
        int(found) for found, value in zip(byte_hashes(array), values[skip:], strict=True) if value is not None
    ] == [polynomial(value) for value in values[skip:] if value is not None]


@pytest.mark.parametrize(
    ("type_", "equal"), [("DOUBLE", [0.0, -0.0]), ("DOUBLE", [math.nan, -math.nan]), ("FLOAT", [0.0, -0.0])]
)
def test_equal_values_hash_equally(type_: str, equal: list[float]) -> None:
    assert len(set(column_hashes(batch_of(f"k {type_}", [{"k": value} for value in equal]).column(0)))) == 1


@pytest.mark.parametrize(
    "keys", [list(range(8000)), [i * 1024 for i in range(8000)], [f"user-{i}" for i in range(8000)]]
)
def test_keys_are_spread_evenly(keys: list[Any]) -> None:
    counts = Counter(
        chosen("k STRING" if isinstance(keys[0], str) else "k BIGINT", [{"k": key} for key in keys], partitions=8)
    )
    assert len(counts) == 8 and max(counts.values()) < 1.2 * min(counts.values())


def test_mixing_loses_nothing() -> None:
    values = np.arange(10_000, dtype=np.uint64)
    assert len(np.unique(mixed(values))) == len(values)
