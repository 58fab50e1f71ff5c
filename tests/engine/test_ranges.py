"""Joins whose ranges lie around the rows that they look for: right at the ends of what a type holds, too.

Spark's whole numbers and dates go on at the least value after the largest: a range that leads beyond an end is empty,
or has everything in it.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

from penstock.log import Record
from tests.engine.conftest import Bench

NEAR = (0, 1, 4, 5, 6, 11)
LONGS = [edge + sign * each for edge, sign in ((-(2**63), 1), (0, 1), (2**63 - 1, -1)) for each in NEAR]
INTS = [edge + sign * each for edge, sign in ((-(2**31), 1), (0, 1), (2**31 - 1, -1)) for each in NEAR]
COLUMNS = "id BIGINT PRIMARY KEY, k BIGINT, n BIGINT, i INT, d DATE, t TIMESTAMP"
RANGES = {
    "around": "a.n BETWEEN b.n - 5 AND b.n + 5",
    "ahead": "a.n >= b.n AND a.n < 5 + b.n",
    "behind": "a.n > b.n - 10 AND a.n - 1 <= b.n - 2",
    "within": "b.n + 5 <= a.n AND a.n <= b.n - 5",
    "overlapping": "a.n - 1 <= b.n + 5 AND b.n - 5 <= a.n + 1",
    "whole": "a.i BETWEEN b.i - 5 AND b.i + 5",
    "days": "a.d BETWEEN b.d - 2 AND date_add(b.d, 3)",
    "hours": "a.t BETWEEN b.t - INTERVAL 30 HOURS AND b.t + INTERVAL 90 MINUTES",
}
DECLARATIONS = f"CREATE TABLE a ({COLUMNS}); CREATE TABLE b ({COLUMNS});" + "".join(
    f"CREATE VIEW {name} AS SELECT a.id, b.id AS other FROM a LEFT JOIN b ON a.k = b.k AND {range};"
    for name, range in RANGES.items()
)


def row(number: int) -> dict[str, Any]:
    at = datetime(2024, 3, 31, tzinfo=UTC) + timedelta(hours=7 * number)
    null = number == len(LONGS) - 1
    n, i = (None, None) if null else (LONGS[number], INTS[number])
    return {"id": number, "k": 1, "n": n, "i": i, "d": date(2024, 2, 27) + timedelta(days=number), "t": at}


def test_ranges_around_rows_find_what_spark_finds(bench: Callable[..., Bench]) -> None:
    found = bench(DECLARATIONS)
    numbers = range(len(LONGS))
    found.append({"a": [row(each) for each in numbers[::2]], "b": [row(each) for each in numbers[::3]]})
    found.drain()
    found.append({"a": [row(each) for each in numbers[1::2]]})
    found.drain()
    found.append({"b": [row(each) for each in numbers]})
    found.drain()
    found.append({"a": [Record({"id": each}, deleted=True) for each in numbers[::4]]})
    found.append({"b": [Record({"id": each}, deleted=True) for each in numbers[::5]]})
    found.drain()
    found.check()
    assert found.checked >= 4
    for name in RANGES:
        assert any(each["other"] is not None for each in found.content(name)), name
