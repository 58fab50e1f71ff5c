"""The rows that a relation has had, by plain Spark: each with the place from which on it was there, and of a table the
place at which it was replaced or taken away, if it was.

Beside the two places stand the records there, and the watermarks of streams before them: `_watermark of S` and
`_until of S`. A record that changes nothing makes no version.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from penstock.engine.source import columns_of
from penstock.model import Stream, Table

PLACE, UNTIL = "_place", "_until"
RECORD = {
    "_partition of its record": "_until_partition",
    "_offset of its record": "_until_offset",
    "_row of its record": "_until_row",
}
"""What is known of the record that makes a version, and of the one that ends it."""
JSON = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""How late records are written."""


def versions_of(relation: Stream | Table, records: DataFrame, streams: Sequence[str]) -> DataFrame:
    columns = columns_of(relation)
    ends = {PLACE: UNTIL} | RECORD | {f"_watermark of {name}": f"{UNTIL} of {name}" for name in streams}
    record = (sf.col("_partition"), sf.col("_offset"), sf.to_json(sf.struct(*columns), JSON))
    known = records.withColumns(dict(zip(RECORD, record, strict=True)))
    known = known.select(*columns, "_deleted", *map(_named, ends))
    if isinstance(relation, Stream):
        return known.drop("_deleted")
    ended = _replaced(relation.key, known, ends) if relation.key else _taken(columns, known, ends)
    return ended.select(*columns, *map(_named, [*ends, *ends.values()]))


def _named(column: str) -> Column:
    return sf.col(f"`{column}`")


def _replaced(key: Sequence[str], records: DataFrame, ends: Mapping[str, str]) -> DataFrame:
    """Every record of a key that changes its row ends the one before."""
    order = Window.partitionBy(*key).orderBy(PLACE)
    row = sf.expr("IF(_deleted, NULL, `_row of its record`)")
    known = (
        records.withColumn("_now", row).withColumn("_before", sf.lag("_now").over(order)).where("NOT _now <=> _before")
    )
    return known.withColumns({end: sf.lead(_named(of)).over(order) for of, end in ends.items()}).where("NOT _deleted")


def _taken(columns: Sequence[Any], records: DataFrame, ends: Mapping[str, str]) -> DataFrame:
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
    taken = {end: sf.max(sf.expr(f"IF(_deleted, `{of}`, NULL)")).over(pair) for of, end in ends.items()}
    return found.withColumns(taken).where("NOT _deleted")
