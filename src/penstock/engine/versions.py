"""The rows that a relation has had, by plain Spark: each with the place from which on it was there, and of a table the
place at which it was replaced or taken away, if it was.

Beside the two places stand the watermarks of streams before the records there: `_watermark of S` and `_until of S`.
"""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from penstock.engine.source import columns_of
from penstock.model import Stream, Table

PLACE, UNTIL = "_place", "_until"


def versions_of(relation: Stream | Table, records: DataFrame, streams: Sequence[str]) -> DataFrame:
    columns, stamps = columns_of(relation), [f"_watermark of {name}" for name in streams]
    known = records.select(*columns, "_deleted", PLACE, *(sf.col(f"`{name}`") for name in stamps))
    if isinstance(relation, Stream):
        return known.drop("_deleted")
    ended = _replaced(relation.key, known, stamps) if relation.key else _taken(columns, known, stamps)
    return ended.select(*columns, *(sf.col(f"`{name}`") for name in [PLACE, *stamps, UNTIL, *map(_until, stamps)]))


def _until(stamp: str) -> str:
    return stamp.replace("_watermark", UNTIL, 1)


def _replaced(key: Sequence[str], records: DataFrame, stamps: Sequence[str]) -> DataFrame:
    """Every record of a key ends the one before."""
    order = Window.partitionBy(*key).orderBy(PLACE)
    ends = {UNTIL: PLACE} | {_until(stamp): stamp for stamp in stamps}
    return records.withColumns({end: sf.lead(f"`{of}`").over(order) for end, of in ends.items()}).where("NOT _deleted")


def _taken(columns: Sequence[Any], records: DataFrame, stamps: Sequence[str]) -> DataFrame:
    """The first deletion of a row takes away the first that was added, and so on; one that finds none does nothing: the
    running sum of +1 and -1 has never been as low.
    """
    order = Window.partitionBy(*columns).orderBy(PLACE)
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    summed = records.withColumn("_sum", sf.sum(sf.expr("IF(_deleted, -1, 1)")).over(order))
    lowest = summed.withColumn("_low", sf.least(sf.coalesce(sf.min("_sum").over(before), sf.lit(0)), sf.lit(0)))
    alike = Window.partitionBy(*columns, "_deleted").orderBy(PLACE)
    found = lowest.where("NOT (_deleted AND _sum < _low)").withColumn("_nth", sf.row_number().over(alike))
    pair = Window.partitionBy(*columns, "_nth")
    ends = {UNTIL: PLACE} | {_until(stamp): stamp for stamp in stamps}
    taken = {end: sf.max(sf.expr(f"IF(_deleted, `{of}`, NULL)")).over(pair) for end, of in ends.items()}
    return found.withColumns(taken).where("NOT _deleted")
