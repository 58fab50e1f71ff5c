"""What pipelines still need of the log, as the log itself tells.

A frame whose note says `until` was written by a reader that has read everything before that frame, and nothing after
(docs/formats/changes.md). Lineages before the one that counts have ended.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from penstock.log.catalog import Catalog
from penstock.log.journal import Journal
from penstock.log.reader import offsets_at_place
from penstock.log.records import Place


def pipelines_need(journal: Journal, catalog: Catalog, topic: str) -> dict[int, int]:
    """The lowest offset of each partition that a pipeline has not read yet."""
    frames = list(_read_until(journal, catalog, topic))
    if not frames or topic not in catalog.topics:
        return {}
    place = Place(min(frames))
    return dict(enumerate(offsets_at_place(journal, catalog.topics[topic], catalog.ends(topic), place)))


def readers_of(journal: Journal, catalog: Catalog, topic: str) -> list[str]:
    """The pipelines of which any lineage reads a topic that counts, still catches up, or has left records in its own
    topics; by name. Lineages that do not say what they read may.
    """
    return sorted({name for name, number in _lineages(journal, catalog) if _may_read(journal, name, number, topic)})


def _lineages(journal: Journal, catalog: Catalog) -> Iterator[tuple[str, int]]:
    """Of every pipeline the lineages that hold anything: that which counts, those after it, those with records."""
    headers = [journal.header(frame) for _, frame in catalog.producers.values()]
    notes = [header.note for header in headers if header and "pipeline" in header.note]
    current = {str(note["pipeline"]): int(note["current"]) for note in notes if "current" in note}
    yield from current.items()
    for note in notes:
        name, number = str(note["pipeline"]), int(note.get("lineage", 0))
        if number > current.get(name, 0) or (number and _has_records(catalog, f"{name}.{number}.")):
            yield name, number


def _has_records(catalog: Catalog, prefix: str) -> bool:
    names = [name for name in catalog.topics if name.startswith(prefix)]
    return any(catalog.begins(name) != catalog.ends(name) for name in names)


def _may_read(journal: Journal, pipeline: str, lineage: int, topic: str) -> bool:
    said = journal.find(pipeline, lineage)
    return said is None or topic in said.note.get("reads", [topic])


def _read_until(journal: Journal, catalog: Catalog, topic: str) -> Iterator[int]:
    """The frame before which each pipeline that reads the topic has read everything."""
    for name, (_, frame) in catalog.producers.items():
        header = journal.header(frame)
        note = header.note if header else {}
        if "current" in note and topic in note.get("reads", [topic]):
            yield from [] if f"{name}/{note['current']}" in catalog.producers else [0]
        if "until" in note and "lineage" in note and _reads(journal, catalog, str(note["pipeline"]), note, topic):
            yield int(note["until"])


def _reads(journal: Journal, catalog: Catalog, pipeline: str, note: Mapping[str, Any], topic: str) -> bool:
    """Whether the lineage of a batch's note has not ended, and reads the topic; one that catches up may read all."""
    last = catalog.producers.get(pipeline)
    header = journal.header(last[1]) if last else None
    if header is None or note["lineage"] > header.note["current"]:
        return True
    return bool(note["lineage"] == header.note["current"]) and topic in header.note.get("reads", [topic])
