"""Whether Flink's answer to a query is ours: the same rows, after both were brought to one form.

Where the two mean the same only in part, the part is compared: see `DIFFERENCES` of the queries.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from benchmarks.nexmark.flink.queries import DIFFERENCES, UNSUPPORTED

Row = dict[str, Any]
INCOMPARABLE = ("q12",)
PARTS = {"q18": ("auction", "bidder", "at"), "q19": ("auction", "price", "place")}
"""Of rows with which others are tied, what is the same whichever is taken."""
MILLISECONDS = ("q11", "q18")
TIMES = {"at", "bid_at", "expires", "start", "end"}


def verdict(query: str, ours: pa.Table, theirs: Iterable[Row]) -> str:
    """What to say of two answers; an error if they should be the same and are not."""
    if query in UNSUPPORTED:
        return f"does not run: {UNSUPPORTED[query]}"
    if query in INCOMPARABLE:
        return f"not compared: {DIFFERENCES[query]}"
    expected, found = bag(query, ours.to_pylist()), bag(query, theirs)
    if expected != found:
        missing, more = expected - found, found - expected
        raise AssertionError(
            f"{query}: of {expected.total()} rows Flink misses {missing.total()} and has {more.total()} others: "
            f"{list(missing)[:2]} {list(more)[:2]}"
        )
    return f"the same {expected.total():,} rows" + (f"; {DIFFERENCES[query]}" if query in PARTS else "")


def bag(query: str, rows: Iterable[Row]) -> Counter[tuple[Any, ...]]:
    unit = 1000 if query in MILLISECONDS else 1
    return Counter(
        tuple(plain(name, value, unit) for name, value in row.items() if name in PARTS.get(query, row)) for row in rows
    )


def plain(name: str, value: Any, unit: int) -> Any:
    """Times without their zone and cut to so many microseconds, other numbers than whole ones rounded."""
    if name in TIMES:
        time = datetime.fromisoformat(value) if isinstance(value, str) else value.replace(tzinfo=None)
        return time.replace(microsecond=time.microsecond // unit * unit)
    return round(float(value), 6) if isinstance(value, float | Decimal) else value
