"""Inspection: everything in the log is read and checked, and what is damaged is named."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from penstock.errors import DamagedLog
from penstock.log.blocks import block_batches, sealed_batches
from penstock.log.columns import block_schema
from penstock.log.frame import Found
from penstock.log.journal import Journal, Stretch
from penstock.log.sealed import STAMPS
from penstock.log.stretch import read_back, read_front


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
        found = _finding(journal, stretch)
        again = journal.stretch(first)
        sealed_meanwhile = again.sealed and not stretch.sealed  # and its staged files have gone
        yield _finding(journal, again) if found.damage and sealed_meanwhile else found


def _finding(journal: Journal, stretch: Stretch) -> Finding:
    problems = [f"bytes {gap.start} to {gap.end - 1} hold no readable frame" for gap in stretch.gaps]
    if not stretch.prelude:
        problems.append("the prelude cannot be read")
    problems += [f"frame {found.header.frame}: one of its headers is damaged" for found in _half_headed(stretch)]
    records = _sealed(journal, stretch, problems) if stretch.sealed else _open(journal, stretch, problems)
    return Finding(stretch.path, len(stretch.frames), records, tuple(problems))


def _half_headed(stretch: Stretch) -> list[Found]:
    """The frames that only one of their two headers tells of."""
    file = stretch.file
    return [
        found
        for found in stretch.frames
        if not (read_front(file, found.start, found.end) and read_back(file, found.start, found.end))
    ]


def _open(journal: Journal, stretch: Stretch, problems: list[str]) -> int:
    records = 0
    topics = journal.catalog_after(stretch.first).topics
    for found in stretch.frames:
        for block in found.header.blocks:
            if block.topic not in topics:
                problems.append(f'frame {found.header.frame}: topic "{block.topic}" is unknown')
                continue
            try:
                for _, _, batch in block_batches(journal, stretch, found, block, topics[block.topic]):
                    records += len(batch)
            except DamagedLog as error:
                problems.append(error.primary)
    return records


def _sealed(journal: Journal, stretch: Stretch, problems: list[str]) -> int:
    records = 0
    topics = journal.catalog_after(stretch.first).topics
    for found in stretch.prelude.get("files", ()):
        columns = block_schema(topics[found["topic"]].schemas[found["schema"]], tuple(found["extras"]))
        schema = pa.schema([*STAMPS, *columns])
        for _, batch in sealed_batches(stretch, found, schema, found["base"], found["base"] + found["count"]):
            if isinstance(batch, DamagedLog):
                problems.append(batch.primary)
            else:
                records += len(batch)
    return records
