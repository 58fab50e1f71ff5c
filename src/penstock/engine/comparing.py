"""Comparison with an earlier interval: each row of a view by time beside the one a while before it, gaps filled.

It is said in joins: in a view it is kept right, in plain Spark it runs as a batch, with the same answer.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import NumericType, StructType, TimestampType

from penstock.engine.eventtime import length_of, quoted, seconds
from penstock.errors import EngineError

START, STEP = "_start", "_step"


def compare_with(
    frame: DataFrame,
    *,
    shift: str | timedelta,
    time: str = "window",
    keys: str | Sequence[str] = (),
    every: str | timedelta | None = None,
    fill: Any = 0,
) -> DataFrame:
    """`compare_with(visits_by_hour, shift="7 days", keys="page")`: this hour against the same hour last week.

    `time` is the column of the interval: a window, or its start, then `every` says how long intervals are. There is a
    row for every interval between the first and the last of its keys. Every other column `x` is followed by
    `earlier_x`; numbers that are missing are `fill`, other values NULL.
    """
    by = [keys] if isinstance(keys, str) else list(keys)
    counted = _is_counted(frame, time, every)
    start, step = _interval(frame, time, every, counted=counted)
    values = [name for name in frame.columns if name != time and name not in by]
    held = frame.select(*map(_column, by), start.alias(START), step.alias(STEP), *map(_column, values))
    grid = _grid(held, by)
    now = _renamed(held, by, values, "now", sf.expr(START))
    before = _renamed(held, by, values, "before", sf.expr(f"{START} + {_span(shift, counted=counted)}"))
    joined = grid.join(now, _matched(grid, now, by, "now"), "left")
    joined = joined.join(before, _matched(grid, before, by, "before"), "left")
    begun, ended = (f"timestamp_micros({each})" if counted else each for each in (START, f"{START} + {STEP}"))
    is_window = isinstance(frame.schema[time].dataType, StructType)
    shown = sf.expr(f"named_struct('start', {begun}, 'end', {ended})" if is_window else begun)
    filled = [_filled(frame, name, prefix, fill) for name in values for prefix in ("now", "before")]
    return joined.select(*map(_column, by), shown.alias(time), *filled)


def _is_counted(frame: DataFrame, time: str, every: str | timedelta | None) -> bool:
    """Whether times are taken as microseconds: windows are all as long, whatever clocks do. Intervals of whole days are
    those of the calendar, and a TIMESTAMP_NTZ knows no clocks.
    """
    _check(frame, time)
    of = frame.schema[time].dataType
    if isinstance(of, StructType):
        return isinstance(of["start"].dataType, TimestampType)
    return isinstance(of, TimestampType) and every is not None and bool(length_of(every) % timedelta(days=1))


def _check(frame: DataFrame, time: str) -> None:
    if time not in frame.columns:
        raise EngineError(
            f'there is no column "{time}" to compare by',
            detail=f"The columns are {', '.join(frame.columns)}.",
            hint="Name the column of the window, or of its start: time='hour', every='1 hour'.",
        )


def _interval(frame: DataFrame, time: str, every: str | timedelta | None, *, counted: bool) -> tuple[Column, Column]:
    """The start of a row's interval, and how long it is."""
    of = sf.unix_micros if counted else sf.col
    if every is not None:
        return of(quoted(time)), sf.expr(_span(every, counted=counted))
    if not isinstance(frame.schema[time].dataType, StructType):
        raise EngineError(
            f'it is not known how long the intervals of "{time}" are',
            hint="Say it: every='1 hour'; or give the window.",
        )
    start, end = (of(f"{quoted(time)}.{each}") for each in ("start", "end"))
    return start, end - start


def _span(duration: str | timedelta, *, counted: bool) -> str:
    return (
        f"{length_of(duration) // timedelta(microseconds=1)}L" if counted else f"INTERVAL '{seconds(duration)}' SECOND"
    )


def _grid(held: DataFrame, by: Sequence[str]) -> DataFrame:
    """Every interval from the first to the last, for each key."""
    spans = held.groupBy(*map(_column, by)).agg(
        sf.expr(f"min({START})").alias("_first"),
        sf.expr(f"max({START})").alias("_last"),
        sf.expr(f"min({STEP})").alias(STEP),
    )
    each = sf.expr(f"explode(sequence(_first, _last, {STEP}))").alias(START)
    return spans.select(*map(_column, by), STEP, each)


def _renamed(held: DataFrame, by: Sequence[str], values: Sequence[str], prefix: str, start: Column) -> DataFrame:
    names = [(name, f"_{prefix}_{name}") for name in (*by, *values)]
    return held.select(start.alias(f"_{prefix}{START}"), *(_column(name).alias(new) for name, new in names))


def _matched(grid: DataFrame, other: DataFrame, by: Sequence[str], prefix: str) -> Column:
    matched = grid[START] == other[f"_{prefix}{START}"]
    for name in by:
        matched = matched & grid[quoted(name)].eqNullSafe(other[quoted(f"_{prefix}_{name}")])
    return matched


def _filled(frame: DataFrame, name: str, prefix: str, fill: Any) -> Column:
    field = frame.schema[name]
    found = sf.col(quoted(f"_{prefix}_{name}"))
    value = sf.coalesce(found, sf.lit(fill).cast(field.dataType)) if isinstance(field.dataType, NumericType) else found
    return value.alias(name if prefix == "now" else f"earlier_{name}")


def _column(name: str) -> Column:
    return sf.col(quoted(name))
