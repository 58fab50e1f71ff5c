"""Places of records that lie in Kafka: which frame of the order holds an offset, and where in it."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from penstock.log.journal import Journal, Member


def with_places(journal: Journal, topic: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches, each of one partition, with a column `_place` and the append times of their frames; what is in no
    frame is left out.
    """
    for batch in batches:
        offsets = batch.column("_offset").to_numpy()
        members = _members(journal, topic, batch.column("_partition")[0].as_py(), int(offsets[0]), int(offsets[-1]) + 1)
        bases = np.array([member.block.base for member in members], np.int64)
        ends = np.array([member.block.end for member in members], np.int64)
        places = np.array([member.place for member in members], np.int64)
        times = np.array([member.found.header.at for member in members], np.int64)
        at = np.searchsorted(bases, offsets, "right") - 1
        known = (at >= 0) & (offsets < (ends[at] if len(ends) else 0))
        rows, at = batch.filter(pa.array(known)), at[known]
        if len(rows):
            appended = pa.array(times[at]).cast(rows.schema.field("_appended_at").type)
            stamped = rows.set_column(rows.schema.names.index("_appended_at"), "_appended_at", appended)
            yield stamped.append_column("_place", pa.array(places[at] + (offsets[known] - bases[at])))


def _members(journal: Journal, topic: str, partition: int, start: int, end: int) -> list[Member]:
    """The blocks that hold any of these offsets, in their order."""
    found: list[Member] = []
    for first in reversed(journal.firsts()):
        found = [*journal.stretch(first).members_between(topic, partition, start, end), *found]
        ends = journal.catalog_before(first).ends(topic)
        if not ends or ends[partition] <= start:
            break
    return found
