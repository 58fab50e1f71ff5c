"""Comparison with an earlier interval: each row of a view by time beside the one a while before it, gaps filled.

It is said in joins: in a view it is kept right, in plain Spark it runs as a batch, with the same answer.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import NumericType, StructType

from penstock.engine.eventtime import quoted, seconds
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
    start, step = _interval(frame, time, every)
    values = [name for name in frame.columns if name != time and name not in by]
    held = frame.select(*map(_column, by), start.alias(START), step.alias(STEP), *map(_column, values))
    grid = _grid(held, by)
    now = _renamed(held, by, values, "now", sf.expr(START))
    before = _renamed(held, by, values, "before", sf.expr(f"{START} + INTERVAL '{seconds(shift)}' SECOND"))
    joined = grid.join(now, _matched(grid, now, by, "now"), "left")
    joined = joined.join(before, _matched(grid, before, by, "before"), "left")
    is_window = isinstance(frame.schema[time].dataType, StructType)
    shown = sf.expr(f"named_struct('start', {START}, 'end', {START} + {STEP})") if is_window else sf.col(START)
    filled = [_filled(frame, name, prefix, fill) for name in values for prefix in ("now", "before")]
    return joined.select(*map(_column, by), shown.alias(time), *filled)


def _interval(frame: DataFrame, time: str, every: str | timedelta | None) -> tuple[Column, Column]:
    """The start of a row's interval, and how long it is."""
    if time not in frame.columns:
        raise EngineError(
            f'there is no column "{time}" to compare by',
            detail=f"The columns are {', '.join(frame.columns)}.",
            hint="Name the column of the window, or of its start: time='hour', every='1 hour'.",
        )
    if every is not None:
        return sf.col(quoted(time)), sf.expr(f"INTERVAL '{seconds(every)}' SECOND")
    if not isinstance(frame.schema[time].dataType, StructType):
        raise EngineError(
            f'it is not known how long the intervals of "{time}" are',
            hint="Say it: every='1 hour'; or give the window.",
        )
    return sf.expr(f"{quoted(time)}.start"), sf.expr(f"{quoted(time)}.end - {quoted(time)}.start")


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
