"""Inspection: everything in the log is read and checked, and what is damaged is named."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from penstock.errors import DamagedLog
from penstock.log.blocks import block_batches, sealed_batches
from penstock.log.columns import block_schema
from penstock.log.journal import Journal, Stretch
from penstock.log.sealed import STAMPS


@dataclass(frozen=True)
class Finding:
    """One stretch file: how many frames and records were read whole, and what was not."""

    path: Path
    frames: int
    records: int
    damage: tuple[str, ...]


def findings(journal: Journal) -> Iterator[Finding]:
    for first in journal.firsts():
        stretch = journal.stretch(first)
        problems = [f"bytes {gap.start} to {gap.end - 1} hold no readable frame" for gap in stretch.gaps]
        if not stretch.prelude:
            problems.append("the prelude cannot be read; it was made up from the stretches before")
        records = _sealed(journal, stretch, problems) if stretch.sealed else _open(journal, stretch, problems)
        yield Finding(stretch.path, len(stretch.frames), records, tuple(problems))


def _open(journal: Journal, stretch: Stretch, problems: list[str]) -> int:
    records = 0
    topics = journal.catalog_after(stretch.first).topics
    for found in stretch.frames:
        for block in found.header.blocks:
            try:
                batches = (
                    block_batches(journal, stretch, found, block, topics[block.topic])
                    if block.topic in topics
                    else iter(())
                )
                records += sum(len(batch) for _, _, batch in batches)
            except DamagedLog as error:
                problems.append(error.primary)
    return records


def _sealed(journal: Journal, stretch: Stretch, problems: list[str]) -> int:
    records = 0
    topics = journal.catalog_after(stretch.first).topics
    for found in stretch.prelude["files"]:
        topic = topics[found["topic"]]
        schema = pa.schema([*STAMPS, *block_schema(topic.schemas[found["schema"]], tuple(found["extras"]))])
        try:
            records += sum(
                map(len, sealed_batches(stretch, found, schema, found["base"], found["base"] + found["count"]))
            )
        except (DamagedLog, FileNotFoundError) as error:
            problems.append(error.primary if isinstance(error, DamagedLog) else f'"{found["name"]}" is missing')
    return records
