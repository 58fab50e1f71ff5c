"""Comparison with an earlier interval: each row of a view by time beside the one a while before it, gaps filled.

It is said in joins: in a view it is kept right, in plain Spark it runs as a batch, with the same answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import NumericType, StructType, TimestampType

from penstock.engine.eventtime import length_of, quoted, seconds, unused_prefix
from penstock.errors import EngineError

EARLIER = "earlier_"
MOST_FILLED = 100_000
"""Intervals between two of a key's that are filled: beyond that, as where a clock says 1970, there is a gap."""


def compare_with(  # noqa: PLR0913 (what is compared, and with what)
    frame: DataFrame,
    *,
    shift: str | timedelta,
    time: str = "window",
    keys: str | Sequence[str] = (),
    every: str | timedelta | None = None,
    fill: Any = 0,
    until_newest: bool = False,
) -> DataFrame:
    """`compare_with(visits_by_hour, shift="7 days", keys="page")`: this hour against the same hour last week.

    `time` is the column of the interval: a window, or its start, then `every` says how long intervals are. There is a
    row for every interval between the first and the last of its keys, unless more than 100,000 are missing between two.
    With `until_newest` the last is the newest of any keys: a page that nobody visits any more has rows that say so.
    Every other column `x` is followed by `earlier_x`; numbers that are missing are `fill`, other values NULL.
    """
    own = _Own.of(frame)
    by = [keys] if isinstance(keys, str) else list(keys)
    counted = _is_counted(frame, time, every)
    start, step = _interval(frame, time, every, counted=counted)
    values = [name for name in frame.columns if name != time and name not in by]
    _check_new(frame, values)
    held = frame.select(*map(_column, by), start.alias(own.start), step.alias(own.step), *map(_column, values))
    grid = _shared_grid(held, by, own) if until_newest else _grid(held, by, own)
    now = _renamed(held, by, values, own.now, own, sf.expr(own.start))
    earlier = sf.expr(f"{own.start} + {_span(shift, counted=counted)}")
    before = _renamed(held, by, values, own.before, own, earlier)
    joined = grid.join(now, _matched(grid, now, by, own.now, own), "left")
    joined = joined.join(before, _matched(grid, before, by, own.before, own), "left")
    ends = (own.start, f"{own.start} + {own.step}")
    begun, ended = (f"timestamp_micros({each})" if counted else each for each in ends)
    is_window = isinstance(frame.schema[time].dataType, StructType)
    shown = sf.expr(f"named_struct('start', {begun}, 'end', {ended})" if is_window else begun)
    filled = [
        value
        for name in values
        for value in (
            _filled(frame, name, own.now, fill).alias(name),
            _filled(frame, name, own.before, fill).alias(EARLIER + name),
        )
    ]
    return joined.select(*map(_column, by), shown.alias(time), *filled)


@dataclass(frozen=True)
class _Own:
    """The names of columns of our own: an interval's start and length, the start of the next; and what those of rows
    that are looked up begin with.
    """

    start: str
    step: str
    next: str
    now: str
    before: str

    @classmethod
    def of(cls, frame: DataFrame) -> "_Own":
        prefix = unused_prefix(frame)
        return cls(*(prefix + name for name in ("start", "step", "next", "now_", "before_")))


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


def _check_new(frame: DataFrame, values: Sequence[str]) -> None:
    taken = {name.lower() for name in frame.columns}
    for name in values:
        if (EARLIER + name).lower() in taken:
            raise EngineError(
                f'"{name}" cannot be compared: there is a column "{EARLIER}{name}"',
                detail=f"The columns are {', '.join(frame.columns)}.",
                hint="Rename it, or leave it out, before rows are compared.",
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


def _grid(held: DataFrame, by: Sequence[str], own: _Own) -> DataFrame:
    """Every interval of a key, and those that are missing between it and the next one."""
    starts = held.groupBy(*map(_column, by), own.start).agg(sf.expr(f"min({own.step})").alias(own.step))
    parted = f"PARTITION BY {', '.join(map(quoted, by))} " if by else ""
    following = starts.withColumn(own.next, sf.expr(f"lead({own.start}) OVER ({parted}ORDER BY {own.start})"))
    # Of long intervals so many would be longer than all times.
    far = f"coalesce({own.next} > try_add({own.start}, try_multiply({own.step}, {MOST_FILLED})), false)"
    missing = f"sequence({own.start}, if({far}, {own.start}, coalesce({own.next}, {own.start})), {own.step})"
    each = f"filter({missing}, at -> at = {own.start} OR at < {own.next})"
    filled = following.select(*map(_column, by), own.step, sf.expr(each).alias(own.next))
    return filled.select(*map(_column, by), own.step, sf.expr(f"explode({own.next})").alias(own.start))


def _shared_grid(held: DataFrame, by: Sequence[str], own: _Own) -> DataFrame:
    """The intervals of all keys together, for each key from its first one on. A new interval costs a row for each key,
    however long that has been silent.
    """
    all_ = _grid(held, (), own)
    firsts = held.groupBy(*map(_column, by)).agg(sf.expr(f"min({own.start})").alias(own.next))
    return firsts.join(all_, all_[own.start] >= firsts[own.next]).drop(own.next)


def _renamed(
    held: DataFrame, by: Sequence[str], values: Sequence[str], prefix: str, own: _Own, start: Column
) -> DataFrame:
    names = [(name, prefix + name) for name in (*by, *values)]
    return held.select(start.alias(prefix + own.start), *(_column(name).alias(new) for name, new in names))


def _matched(grid: DataFrame, other: DataFrame, by: Sequence[str], prefix: str, own: _Own) -> Column:
    matched = grid[own.start] == other[prefix + own.start]
    for name in by:
        matched = matched & grid[quoted(name)].eqNullSafe(other[quoted(prefix + name)])
    return matched


def _filled(frame: DataFrame, name: str, prefix: str, fill: Any) -> Column:
    field = frame.schema[name]
    found = sf.col(quoted(prefix + name))
    return sf.coalesce(found, sf.lit(fill).cast(field.dataType)) if isinstance(field.dataType, NumericType) else found


def _column(name: str) -> Column:
    return sf.col(quoted(name))
