"""Inspection: everything in the log is read and checked, and what is damaged is named."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.errors import DamagedLog
from penstock.log.blocks import block_batches, opened_file, sealed_batches
from penstock.log.columns import block_schema
from penstock.log.expiry import is_kept
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
        again = journal.reopened(first) if found.damage else stretch
        changed = again.sealed != stretch.sealed or _files(journal, again) != _files(journal, stretch)
        yield _finding(journal, again) if changed else found  # it was sealed or tidied meanwhile, and files have gone


def _files(journal: Journal, stretch: Stretch) -> list[dict[str, Any]]:
    """The files of a sealed stretch that hold anything still kept."""
    catalog = journal.catalog_now()
    return [found for found in stretch.files if is_kept(catalog, found)]


def _finding(journal: Journal, stretch: Stretch) -> Finding:
    problems = [f"bytes {gap.start} to {gap.end - 1} hold no readable frame" for gap in stretch.gaps]
    if not stretch.prelude:
        problems.append("the prelude cannot be read")
    elif stretch.unlisted:
        problems.append("the list of its files cannot be read")
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
    for found in _files(journal, stretch):
        columns = block_schema(topics[found["topic"]].schemas[found["schema"]], tuple(found["extras"]))
        schema = pa.schema([*STAMPS, *columns])
        path, within = stretch.folder / found["name"], (found["base"], found["base"] + found["count"])
        with opened_file(path) as file:
            for batch in sealed_batches(path, file, found, schema, within):
                if isinstance(batch.rows, DamagedLog):
                    problems.append(batch.rows.primary)
                else:
                    records += len(batch.rows)
    return records
