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
    """The pipelines of which the lineage that counts reads a topic, or one that was begun after it may; by name."""
    return sorted(
        name
        for name, note in _pipelines(journal, catalog).items()
        if max(_reading(journal, catalog, name, note, topic), default=-1) >= _number(note)
    )


def former_readers_of(journal: Journal, catalog: Catalog, topic: str) -> list[str]:
    """The pipelines of which only lineages before the one that counts have read a topic, or may have; by name. What
    they have left of it, and where, the log does not know. Of pipelines that have ended, nothing is left.
    """
    return sorted(
        name
        for name, note in _pipelines(journal, catalog).items()
        if 0 < max(_reading(journal, catalog, name, note, topic), default=0) < _number(note) and not _has_ended(note)
    )


def _pipelines(journal: Journal, catalog: Catalog) -> dict[str, Mapping[str, Any]]:
    """By name what the frame says that made a lineage of it the one that counts; nothing where none does yet."""
    headers = [journal.header(frame) for _, frame in catalog.producers.values()]
    notes = [header.note for header in headers if header and "pipeline" in header.note]
    found: dict[str, Mapping[str, Any]] = {str(note["pipeline"]): {} for note in notes}
    return found | {str(note["pipeline"]): note for note in notes if "current" in note}


def _number(note: Mapping[str, Any]) -> int:
    return int(note.get("current", 0))


def _has_ended(note: Mapping[str, Any]) -> bool:
    return not note["views"] and not note.get("reads", [""])


def _reading(journal: Journal, catalog: Catalog, pipeline: str, note: Mapping[str, Any], topic: str) -> set[int]:
    """The lineages of a pipeline that read a topic, or may: those that have not said what they read are known by their
    own topics, which are there before they read anything.
    """
    own = _with_topics(catalog, pipeline)
    said = {each: journal.find(pipeline, each) for each in own | set(range(1, _number(note) + 1))}
    return {
        each
        for each, header in said.items()
        if (each in own if header is None else topic in header.note.get("reads", [topic]))
    }


def _with_topics(catalog: Catalog, pipeline: str) -> set[int]:
    prefix = f"{pipeline}."
    names = (topic.removeprefix(prefix) for topic in catalog.topics if topic.startswith(prefix))
    return {int(number) for name in names if (number := name.partition(".")[0]).isdecimal()}


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
