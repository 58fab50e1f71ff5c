"""Verifying: what a view holds against what Spark's batch engine says over the same prefix of the log.

The view is read with the position that it has; the batch reads the sources up to there. Both may go on meanwhile.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from penstock.app.pipelines import HERE, Opened, Setting, opened
from penstock.app.stores import position_of, reader_of
from penstock.engine.compile import Compiled, compiled
from penstock.engine.fingerprint import check_unchanged, fingerprint_of
from penstock.engine.lineage import newest
from penstock.engine.oracle import Difference, Oracle, compared
from penstock.engine.run import settings_of
from penstock.engine.whole import check_whole
from penstock.errors import EngineError, ViewError
from penstock.log.protocol import OrderedLog
from penstock.model import View
from penstock.views import Position, ViewReader


@dataclass(frozen=True)
class Verdict:
    """A view, its position and size, and where it differs from batch; no difference where it is not kept. `settled`:
    how many rows of streams would have been corrected, had what corrects them not come too late.
    """

    view: str
    columns: tuple[str, ...] = ()
    rows: int = 0
    position: Position | None = None
    difference: Difference | None = None
    settled: int = 0


def verify(path: Path, view: str | None = None, *, setting: Setting = HERE) -> Iterator[Verdict]:
    """The verdict on each view, or on one."""
    at = opened(path, setting)
    wanted = at.pipeline.views if view is None else (at.pipeline.view(view),)
    if newest(at.checkpoints, at.pipeline.name) is None:
        raise ViewError(
            f'pipeline "{at.pipeline.name}" has not run yet', hint=f"Run it first: penstock run {at.place} --once"
        )
    with at.place.hinted(), at.opened_log(create=False) as log, at.session() as spark:
        yield from verdicts(at, wanted, log, spark)


def verdicts(at: Opened, views: Iterable[View], log: OrderedLog, spark: Any) -> Iterator[Verdict]:
    """The verdict on each of the views, in a session that is there."""
    plan = compiled(spark, at.pipeline)
    check_same(at, log, fingerprint_of(at.pipeline, plan, log, settings_of(spark)))
    oracle = lru_cache(maxsize=2)(lambda until: Oracle(spark, at.pipeline, log.folder, until))
    for each in views:
        yield _verdict(at, log, each, plan, oracle)


def check_same(at: Opened, log: OrderedLog, fingerprint: dict[str, Any]) -> None:
    """What the store holds was computed by this pipeline, as it is now."""
    lineage = newest(at.checkpoints, at.pipeline.name)
    assert lineage is not None
    check_unchanged(lineage, fingerprint)
    position = position_of(at.store, at.pipeline.name)
    if position is None or position.lineage != lineage.number:
        raise EngineError(
            f'pipeline "{at.pipeline.name}" has not caught up since it was reset',
            detail=f"Readers see lineage {position.lineage if position else 'none'}, the newest is {lineage.number}.",
            hint=f"Run it first: penstock run {at.place} --once",
        )
    if position.log != log.identity:
        raise ViewError(
            f'the store is not one of pipeline "{at.pipeline.name}" in this log',
            detail=f"It was filled from log {position.log}; this one is {log.identity}.",
        )


def _verdict(at: Opened, log: OrderedLog, view: View, plan: Compiled, oracle: Any) -> Verdict:
    if view.options.store == "none":
        return Verdict(view.name)
    with _reader(at, log, view) as reader:
        answer = reader.rows(view.name)
    check_whole(log, at.pipeline, until=answer.position.until)
    batch = oracle(answer.position.until)
    expected = batch.rows(view.name)
    difference = compared(expected, answer.table, unordered=plan.unordered[view.name])
    columns = tuple(expected.column_names)
    return Verdict(view.name, columns, len(answer), answer.position, difference, batch.concerned(view.name))


def _reader(at: Opened, log: OrderedLog, view: View) -> ViewReader:
    if view.options.store != "table":
        return ViewReader.of_topic(log, at.pipeline.name, view.name)
    return reader_of(at.store, at.pipeline.name, view.name)
