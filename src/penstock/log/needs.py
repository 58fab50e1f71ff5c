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
    """The pipelines that read a topic, by name; those that do not say what they read may."""
    headers = {name: journal.header(frame) for name, (_, frame) in catalog.producers.items()}
    notes = {name: header.note for name, header in headers.items() if header and "current" in header.note}
    return sorted(name for name, note in notes.items() if topic in note.get("reads", [topic]))


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
