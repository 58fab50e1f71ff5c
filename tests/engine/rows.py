"""The relations of random pipelines and the records that go into them: few values of every type, so that keys meet,
among them those that are easily got wrong.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

Row = dict[str, Any]

NAN, INFINITY = float("nan"), float("inf")
PAYLOAD: Mapping[str, tuple[str, Sequence[Any]]] = {
    "k": ("BIGINT", (0, 1, 2, 3, 4)),
    "i": ("SMALLINT", (-1, 0, 2, 4)),
    "v": ("DECIMAL(10,2)", tuple(Decimal(n) / 4 for n in range(0, 24, 3))),
    "w": ("DECIMAL(30,5)", (Decimal("1.00001"), Decimal("-12345678901234567890.5"), Decimal(10) ** 24)),
    "x": ("DOUBLE", (0.0, -0.0, 0.25, 1.5, -2.0, NAN, NAN, INFINITY, -INFINITY)),
    "f": ("FLOAT", (0.0, -0.0, 0.5, -8.0, NAN)),
    "t": ("STRING", ("", "a", "ab", "b", "ä", "\U0001f600")),
    "b": ("BOOLEAN", (True, False)),
    "y": ("BINARY", (b"", b"\x00", b"\x00\xff", b"a")),
    "a": ("DATE", (date(2024, 2, 29), date(1, 1, 1), date(1969, 12, 31))),
    "at": ("TIMESTAMP", (datetime(2024, 2, 29, 23, 59, 59, 999999, UTC), datetime(1969, 12, 31, 1, tzinfo=UTC))),
    "z": ("TIMESTAMP_NTZ", (datetime(2024, 2, 29, 12), datetime(1900, 1, 1, 0, 0, 0, 1))),
    "o": (
        "STRUCT<k: BIGINT, x: DOUBLE, t: STRING>",
        ({"k": 1, "x": 0.0, "t": "a"}, {"k": 1, "x": -0.0, "t": "a"}, {"k": None, "x": NAN, "t": None}),
    ),
    "l": ("ARRAY<DOUBLE>", ([], [0.0], [-0.0], [NAN, None], [1.5, 0.25])),
    "m": ("MAP<STRING, BIGINT>", ({}, {"a": 1}, {"b": None, "a": 2})),
}
COLUMNS = tuple(PAYLOAD)
NULL_SHARE = 0.15
DECLARED = ", ".join(f"{name} {type_}" for name, (type_, _) in PAYLOAD.items())
WITHOUT_MAP = ", ".join(f"{name} {type_}" for name, (type_, _) in PAYLOAD.items() if name != "m")
RELATIONS = f"""\
CREATE STREAM s ({DECLARED});
CREATE TABLE d (id BIGINT PRIMARY KEY, {DECLARED});
CREATE TABLE e ({DECLARED}, PRIMARY KEY (k, t));
CREATE TABLE g ({WITHOUT_MAP});
"""


def payload(random: Random) -> Row:
    """A row of the stream; every column is NULL now and then."""
    return {
        name: None if random.random() < NULL_SHARE else random.choice(values) for name, (_, values) in PAYLOAD.items()
    }


def row_of_bag(random: Random) -> Row:
    """Maps are no keys, and in a bag the whole row is one."""
    return {name: value for name, value in payload(random).items() if name != "m"}


def row_under_one_column(random: Random) -> Row:
    return {"id": random.randrange(5), **payload(random)}


def row_under_two_columns(random: Random) -> Row:
    return payload(random) | {name: random.choice(PAYLOAD[name][1]) for name in ("k", "t")}
