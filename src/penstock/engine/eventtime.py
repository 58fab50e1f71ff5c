"""The event time of a DataFrame: the column that the stream beneath it was declared with."""

from datetime import timedelta

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    GeographyType,
    GeometryType,
    MapType,
    StructType,
    UserDefinedType,
    VariantType,
)

from penstock.errors import EngineError
from penstock.model import parse_duration

UNORDERED = (MapType, VariantType, CalendarIntervalType, GeographyType, GeometryType)
"""Types that Spark puts no rows into the order of, nor of what contains them."""


def event_time_of(frame: DataFrame) -> str:
    """The event time of the one stream that the frame reads, if it still has that column."""
    jvm = frame.sparkSession._jvm
    assert jvm is not None
    found = {name for name in jvm.org.apache.spark.sql.penstock.Door.eventTimes(frame._jdf) if name in frame.columns}
    if len(found) != 1:
        raise EngineError(
            "it is not clear which column is the time",
            detail=f"The columns are {', '.join(frame.columns)}.",
            hint="Name it: time='at'.",
        )
    return str(found.pop())


def unused_prefix(frame: DataFrame) -> str:
    """With which no column's name begins, so that columns of our own can have it."""
    prefix = "_"
    while any(name.startswith(prefix) for name in frame.columns):
        prefix += "_"
    return prefix


def ordered_columns(frame: DataFrame) -> list[str]:
    """Those that rows can be put into the order of."""
    return [field.name for field in frame.schema if _is_ordered(field.dataType)]


def _is_ordered(kind: DataType) -> bool:
    match kind:
        case StructType():
            return all(_is_ordered(field.dataType) for field in kind)
        case ArrayType():
            return _is_ordered(kind.elementType)
        case UserDefinedType():
            return _is_ordered(kind.sqlType())
    return not isinstance(kind, UNORDERED)


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def length_of(duration: str | timedelta) -> timedelta:
    return parse_duration(duration) if isinstance(duration, str) else duration


def seconds(duration: str | timedelta) -> str:
    """As the number that an interval of seconds is written with."""
    whole, micros = divmod(length_of(duration) // timedelta(microseconds=1), 1_000_000)
    return f"{whole}.{micros:06}" if micros else str(whole)
