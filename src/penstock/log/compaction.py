"""Compaction: of every key of a topic only the newest record stays, before some frame.

Which frame that is, is written into the log before any record goes; readers that need every record look there. It
never lies beyond what a pipeline has read, so that no pipeline misses one, and only sealed stretches from the first
one on are compacted. They are rewritten from the oldest to the newest: a deletion never goes before what it deletes. It
goes in a later run, once the run that took everything before it was done for as long as deletions are kept, and all
readers have it. The rows that records replace go too: they are not what was there before any more.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import pairwise, takewhile
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.log.catalog import Catalog
from penstock.log.disk import Disk
from penstock.log.expiry import is_kept
from penstock.log.frame import INDEX_BITS
from penstock.log.journal import Journal
from penstock.log.newest import Newest, Places, among
from penstock.log.retention import MICROSECOND
from penstock.log.rewriting import records, rewrite
from penstock.log.topic import Topic

WORTHWHILE = 0.5
"""In the background a topic is compacted when this part of it, in bytes, has come since the last time."""
Marks = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
Limit = Mapping[int, int]
"""An offset for each partition; where there is none, there is no limit."""
LAG = timedelta(minutes=1)
"""In the background nothing younger is compacted: who has begun to read until then finds every key."""
Told = Callable[[int], None]
"""Hears how many records were looked at, as it goes."""


@dataclass(frozen=True)
class Plan:
    """What a run does: these stretches, all before frame `below`; deletions before frame `deletions` go, where they lie
    before the offsets that all have `read`.
    """

    topic: Topic
    stretches: tuple[int, ...]
    below: int
    deletions: int
    read: Limit


@dataclass(frozen=True)
class Compacted:
    """What a run did to a topic before frame `below`: how many records were there, and how many stayed."""

    topic: str
    below: int
    before: int
    after: int


@dataclass(frozen=True)
class Allowed:
    """How far a run may go: up to the offsets `within`, and not over what came in the last `lag`; deletions may go
    before the offsets that all have `read`.
    """

    within: Limit
    read: Limit
    lag: timedelta


def planned(journal: Journal, catalog: Catalog, topic: Topic, now: int, allowed: Allowed) -> Plan:
    """What can be compacted now, in whole stretches."""
    within, until = allowed.within, now - allowed.lag // MICROSECOND
    state = catalog.standings[topic.name].compaction
    firsts, sealed = journal.firsts(), set(journal.sealed())

    def is_within(following: int) -> bool:
        before = journal.catalog_before(following)
        ends = enumerate(before.ends(topic.name))
        return before.appended_at <= until and all(end <= within.get(partition, end) for partition, end in ends)

    closed = list(takewhile(lambda each: each[0] in sealed, pairwise(firsts)))
    chosen = [first for first, following in closed if following <= state.below or is_within(following)]
    below = max([state.below, *(following for first, following in closed if first in chosen)])
    due = state.done is not None and now >= state.done[1] + topic.retention.deletions // MICROSECOND
    deletions = max(state.deletions, state.done[0] if due and state.done else 0)
    return Plan(topic, tuple(chosen), below, deletions, allowed.read)


def is_new(catalog: Catalog, plan: Plan) -> bool:
    """Whether a run would do anything that the last one has not done."""
    state = catalog.standings[plan.topic.name].compaction
    unfinished = state.done is None and state.below > 0
    return plan.below > state.below or plan.deletions > state.deletions or unfinished


def is_worthwhile(journal: Journal, catalog: Catalog, plan: Plan) -> bool:
    """Whether enough has come since the last run."""
    below = catalog.standings[plan.topic.name].compaction.below
    sizes = {
        first: sum(each["bytes"] for found in _files(journal, catalog, first, plan) for each in found["batches"])
        for first in plan.stretches
    }
    clean = sum(size for first, size in sizes.items() if first < below)
    return bool(sum(sizes.values()) - clean > WORTHWHILE * clean)


def compact(
    journal: Journal, catalog: Catalog, plan: Plan, disk: Disk, *, told: Told, stop: Callable[[], bool]
) -> Compacted | None:
    """Rewrites the stretches, after the log says so; None if it was stopped before it was done."""
    newest = Newest(plan.topic.key)
    before = after = 0
    for first in plan.stretches:
        if stop():
            return None
        for batch in _records(journal, catalog, first, plan):
            newest.add(batch.filter(batch.column("key").is_valid()) if plan.topic.raw else batch)
            before += len(batch)
            told(len(batch))
    places = newest.places()
    for first in plan.stretches:
        if stop():
            return None
        after += _compact_stretch(journal, catalog, first, plan, places, disk)
    return Compacted(plan.topic.name, plan.below, before, after)


def _compact_stretch(journal: Journal, catalog: Catalog, first: int, plan: Plan, newest: Places, disk: Disk) -> int:
    """How many records of the stretch stay."""
    stay = 0
    for found in _files(journal, catalog, first, plan):
        stays = partial(_stays, plan, found["partition"], newest)
        stretch = journal.stretch(first)  # as the file before has left it
        all_stay = [stays(batch) for batch in records(stretch, found, plan.topic)]
        stay += sum(int(each.sum()) for each in all_stay)
        if "_replaces" in found["extras"] or not all(each.all() for each in all_stay):
            rewrite(journal, stretch, found | {"below": plan.below}, plan.topic, partial(_kept, stays), disk)
    return stay


def _kept(stays: Callable[[pa.RecordBatch], Marks], batch: pa.RecordBatch) -> pa.RecordBatch:
    rows = batch.filter(pa.array(stays(batch)))
    return rows.select([name for name in rows.schema.names if name != "_replaces"])


def _stays(plan: Plan, partition: int, newest: Places, batch: pa.RecordBatch) -> Marks:
    places = batch.column("_place").to_numpy()
    stays = among(places, newest)
    if plan.topic.raw:  # without a key, a record replaces none
        stays |= batch.column("key").is_null().to_numpy(zero_copy_only=False)
    if plan.deletions and "_deleted" in batch.schema.names:
        offsets = batch.column("_offset").to_numpy()
        deleted = batch.column("_deleted").to_numpy(zero_copy_only=False)
        old = (places >> INDEX_BITS) < plan.deletions
        stays &= ~(deleted & old & (offsets < plan.read.get(partition, np.iinfo(np.int64).max)))
    return stays


def _records(journal: Journal, catalog: Catalog, first: int, plan: Plan) -> Iterator[pa.RecordBatch]:
    for found in _files(journal, catalog, first, plan):
        yield from records(journal.stretch(first), found, plan.topic)


def _files(journal: Journal, catalog: Catalog, first: int, plan: Plan) -> list[dict[str, Any]]:
    files = journal.stretch(first).files
    return [found for found in files if found["topic"] == plan.topic.name and is_kept(catalog, found)]
