"""As-of joins of DataFrames: every row with the row of another that was, or will be, the nearest to it in time.

What `ASOF JOIN` says in SQL. In a view it is kept right; in plain Spark it runs as a batch, with the same answer: what
the planner does to a view's join, that deleted versions match nothing and that ties are settled, is done here.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, TypedDict, Unpack

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import BooleanType

from penstock.engine.eventtime import ordered_columns, quoted, unused_prefix
from penstock.errors import EngineError, did_you_mean
from penstock.model import parse_duration

LEFT, RIGHT = "_left", "_right"
DELETED, PLACE = "_deleted", "_place"
"""Hidden columns of a version of a row: whether it is a deletion, and where it stands in the log."""
CHOICES = {"how": ("inner", "left"), "direction": ("backward", "forward")}


class AsOfWords(TypedDict, total=False):
    """The columns that are equal on both sides; the times, and how far apart they may be; what becomes of rows without
    a partner; whether it lies before them or after them, and whether it may have the same time.
    """

    on: str | Sequence[str]
    left_time: str
    right_time: str
    tolerance: str | timedelta | None
    how: Literal["inner", "left"]
    direction: Literal["backward", "forward"]
    allow_exact_matches: bool


def asof_join(left: DataFrame, right: DataFrame, **how: Unpack[AsOfWords]) -> DataFrame:
    """`asof_join(sales, rates, on="state", left_time="at", right_time="since", tolerance="365 days", how="left")`.

    The columns of both; of the right, those of `on` are left out, and its time where it has the name of the left's.
    """
    _check_words(how)
    plain = not (_is_declared(left) or _is_declared(right))
    keys, times = _keys(how), (_time(how, "left_time", left), _time(how, "right_time", right))
    for key in keys:
        _check_column(key, left, "left")
        _check_column(key, right, "right")
    one_each = _settled(right, [*keys, times[1]], forward=_choice(how, "direction") == "forward") if plain else right
    joined = left.alias(LEFT)._joinAsOf(
        one_each.alias(RIGHT),
        _column(LEFT, times[0]),
        _column(RIGHT, times[1]),
        [_column(LEFT, key) == _column(RIGHT, key) for key in keys] or None,
        _choice(how, "how"),
        tolerance=_tolerance(how.get("tolerance")),
        allowExactMatches=how.get("allow_exact_matches", True),
        direction=_choice(how, "direction"),
    )
    known = {key.lower() for key in keys} | ({times[0].lower()} if times[0].lower() == times[1].lower() else set())
    more = [name for name in right.columns if name.lower() not in known]
    if plain and _has_deletions(right):
        return _present(joined, more, outer=_choice(how, "how") == "left")
    return joined.select(f"{LEFT}.*", *(_column(RIGHT, name) for name in more))


def _is_declared(frame: DataFrame) -> bool:
    """Whether it reads a relation of a pipeline: then the planner knows which versions count, and which are deleted."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    known = [leaves.apply(number) for number in range(leaves.size())]
    return any(
        each.getClass().getSimpleName() == "DataSourceV2Relation" and each.options().get("relation") for each in known
    )


def _settled(right: DataFrame, by: Sequence[str], *, forward: bool) -> DataFrame:
    """Of rows with the same keys and time the last, looking forward the first, in the order of their places in the log,
    where they have them, or of all columns that have an order.
    """
    names = sorted(ordered_columns(right), key=lambda name: name != PLACE)
    order = [f"{quoted(name)} {'ASC' if forward else 'DESC'}" for name in names]
    rank = f"{unused_prefix(right)}rank"
    ranked = f"row_number() OVER (PARTITION BY {', '.join(map(quoted, by))} ORDER BY {', '.join(order)})"
    return right.withColumn(rank, sf.expr(ranked)).where(f"{rank} = 1").drop(rank)


def _has_deletions(right: DataFrame) -> bool:
    """Whether it is the history of a table: a column `deleted` can be a stream's own, one of this name cannot."""
    return any(field.name == DELETED and isinstance(field.dataType, BooleanType) for field in right.schema)


def _present(joined: DataFrame, more: Sequence[str], *, outer: bool) -> DataFrame:
    """Rows whose partner is deleted have none."""
    there = ~sf.coalesce(_column(RIGHT, DELETED), sf.lit(False))
    rows = joined if outer else joined.where(there)
    return rows.select(f"{LEFT}.*", *(sf.when(there, _column(RIGHT, name)).alias(name) for name in more))


def _check_words(how: AsOfWords) -> None:
    for word in how.keys() - AsOfWords.__annotations__.keys():
        raise EngineError(f'an as-of join knows no "{word}"', hint=did_you_mean(word, AsOfWords.__annotations__))


def _keys(how: AsOfWords) -> list[str]:
    on = how.get("on", ())
    return [on] if isinstance(on, str) else list(on)


def _time(how: AsOfWords, word: Literal["left_time", "right_time"], frame: DataFrame) -> str:
    if word not in how:
        raise EngineError(
            f"an as-of join needs {word}", hint="Name the columns of both times: left_time='at', right_time='since'."
        )
    _check_column(how[word], frame, word.removesuffix("_time"))
    return how[word]


def _choice(how: AsOfWords, word: Literal["how", "direction"]) -> str:
    value = how.get(word, CHOICES[word][0])
    if value not in CHOICES[word]:
        raise EngineError(f'{word} of an as-of join cannot be "{value}"', hint=f"Choose {' or '.join(CHOICES[word])}.")
    return value


def _check_column(name: str, frame: DataFrame, side: str) -> None:
    if name.lower() not in (column.lower() for column in frame.columns):
        raise EngineError(
            f'column "{name}" does not exist on the {side} of an as-of join',
            detail=f"The columns are {', '.join(frame.columns)}.",
        )


def _column(side: str, name: str) -> Column:
    return sf.col(f"{side}.{quoted(name)}")


def _tolerance(given: str | timedelta | None) -> Column | None:
    if given is None:
        return None
    duration = parse_duration(given) if isinstance(given, str) else given
    if duration < timedelta(0):
        raise EngineError("the tolerance of an as-of join cannot be negative")
    return sf.lit(duration)
