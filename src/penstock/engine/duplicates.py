"""Deduplication: of rows with equal keys, those that no other precedes within a time.

It is said in window functions: in a view it is kept right, with state that goes as time goes on; in plain Spark it runs
as a batch, with the same answer.
"""

from collections.abc import Sequence
from datetime import timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from penstock.engine.eventtime import event_time_of, length_of, ordered_columns, quoted, seconds, unused_prefix
from penstock.errors import EngineError, did_you_mean


def deduplicate(
    frame: DataFrame, keys: str | Sequence[str], *, within: str | timedelta, time: str | None = None
) -> DataFrame:
    """`deduplicate(events, "id", within="1 hour")`: without the rows that another with the same `id` precedes by an
    hour or less.

    The time is the stream's event time, or the column `time`. Of rows with the same time one stays, the first in the
    order of all columns that have one. Rows without a time stay.
    """
    if length_of(within) < timedelta(0):
        raise EngineError("the time within which duplicates are found cannot be negative")
    known = [keys] if isinstance(keys, str) else list(keys)
    at = time or event_time_of(frame)
    for name in (*known, at):
        _check(frame, name)
    by = ", ".join(map(quoted, known))
    order = ", ".join(map(quoted, ordered_columns(frame))) or by
    moment, copy, earlier = (unused_prefix(frame) + name for name in ("moment", "copy", "earlier"))
    timed = frame.withColumn(moment, sf.window(sf.col(quoted(at)), "1 microsecond"))
    once = timed.withColumn(copy, sf.expr(f"row_number() OVER (PARTITION BY {by}, {moment} ORDER BY {order})"))
    first = once.where(f"{copy} = 1")
    if length_of(within):
        count = (
            f"count(1) OVER (PARTITION BY {by} ORDER BY {quoted(at)} RANGE BETWEEN "
            f"INTERVAL '{seconds(within)}' SECOND PRECEDING AND INTERVAL '0.000001' SECOND PRECEDING)"
        )
        first = first.withColumn(earlier, sf.expr(count)).where(f"{earlier} = 0")
    columns = [quoted(name) for name in frame.columns]
    return first.select(*columns).unionAll(frame.where(sf.col(quoted(at)).isNull()).select(*columns))


def _check(frame: DataFrame, name: str) -> None:
    if name.lower() not in {each.lower() for each in frame.columns}:
        raise EngineError(
            f'there is no column "{name}" to find duplicates by',
            detail=f"The columns are {', '.join(frame.columns)}.",
            hint=did_you_mean(name, frame.columns),
        )
