"""Lineages in the log: what the frames of a pipeline say of themselves.

Which lineage readers see, which views it has, and which frame holds which batch stands in the notes of frames
(docs/formats/changes.md). Frames of other pipelines and of other lineages are passed over.
"""

from collections.abc import Iterator
from itertools import takewhile
from typing import get_args

from penstock.errors import ViewError
from penstock.log.frame import Header
from penstock.log.protocol import OrderedLog
from penstock.views.step import Kept, Lineage, Position, View


def current(log: OrderedLog, pipeline: str) -> Lineage | None:
    """The lineage that readers see now."""
    header = log.last(pipeline)
    return None if header is None else announced(log, pipeline, header)


def current_before(log: OrderedLog, pipeline: str, frame: int) -> Lineage | None:
    """The lineage that readers saw before a frame."""
    newest = current(log, pipeline)
    if newest is None or newest.frame < frame:
        return newest
    found = None
    for header in frames_between(log, 0, frame):
        found = header if _announces(pipeline, header) else found
    return None if found is None else announced(log, pipeline, found)


def announced(log: OrderedLog, pipeline: str, header: Header) -> Lineage | None:
    """The lineage that a frame makes the current one, if it does."""
    if not _announces(pipeline, header):
        return None
    number, views = int(header.note["current"]), header.note["views"]
    found = []
    for name, each in views.items():
        if each["store"] in get_args(Kept):
            topic = log.topic(f"{pipeline}.{number}.{name}")
            parts, indexes = tuple(each.get("partition_by", ())), tuple(map(tuple, each.get("index", ())))
            found.append(View(name, topic.schema, topic.key, each["store"], parts, indexes))
    return Lineage(pipeline, number, header.frame, tuple(found))


def _announces(pipeline: str, header: Header) -> bool:
    return header.producer == pipeline and header.note.get("pipeline") == pipeline and "current" in header.note


def frames_between(log: OrderedLog, start: int, end: int) -> Iterator[Header]:
    """The committed frames from `start` up to, not including, `end`."""
    return takewhile(lambda header: header.frame < end, log.frames(start))


def batches_between(
    log: OrderedLog, lineage: Lineage, start: int, end: int, *, first: int | None
) -> Iterator[tuple[Header, Position]]:
    """The lineage's batches in the frames from `start` up to `end`, each with the position after it.

    Batches have no gaps: `first` is the number that must come first, None for any.
    """
    for header in frames_between(log, start, end):
        if header.producer != lineage.producer or "batch" not in header.note:
            continue
        batch = int(header.note["batch"])
        if first is not None and batch != first:
            raise _gap(lineage, first, header, batch)
        yield header, Position(log.identity, lineage.number, header.frame, batch, int(header.note["until"]))
        first = batch + 1


def _gap(lineage: Lineage, missing: int, header: Header, batch: int) -> ViewError:
    return ViewError(
        f'batch {missing} of "{lineage.pipeline}" is missing in the log',
        detail=f"Frame {header.frame} holds batch {batch} of lineage {lineage.number}.",
        hint="A frame was lost or damaged: penstock log check names it. "
        "To compute the views anew: penstock reset PIPELINE",
    )


def check_position(log: OrderedLog, pipeline: str, position: Position) -> None:
    """Refuses a position that is not one of this pipeline in this log."""
    if position.log != log.identity:
        raise _stranger(pipeline, f"It was filled from log {position.log}; this one is {log.identity}.")
    if position.frame >= log.mark().next_frame:
        raise _stranger(
            pipeline, f"It stands at frame {position.frame}; the log ends before frame {log.mark().next_frame}."
        )
    header = next(log.frames(position.frame))
    if header.frame > position.frame:  # its header is damaged: what it did is in the store
        return
    if not _is_at(pipeline, position, header):
        raise _stranger(pipeline, f"It has taken frame {position.frame}, which is not what the log holds there.")


def _is_at(pipeline: str, position: Position, header: Header) -> bool:
    """Whether the frame is one after which a store of the pipeline has this position."""
    note = header.note
    batch = (note.get("lineage"), note.get("batch")) == (position.lineage, position.batch)
    return note.get("pipeline") == pipeline and (note.get("current") == position.lineage or batch)


def _stranger(pipeline: str, detail: str) -> ViewError:
    return ViewError(
        f'the store is not one of pipeline "{pipeline}" in this log',
        detail=detail,
        hint="Use the store that belongs to it, or take this one away: a new one fills itself from the log.",
    )
