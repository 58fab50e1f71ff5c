"""Staged files of a lineage: where they lie, their names, and the removal of those that no frame refers to.

A log in a folder keeps the files as they are, in that folder. One on Kafka does not: there they lie with the lineage,
in the folder that the executors of a cluster share.

Tasks that failed, and runs that died before their append, leave such files; so does an append, of those that it took
under names of its own.
"""

from pathlib import Path

from penstock.engine.kafka import lies_in_kafka
from penstock.engine.lineage import Lineage
from penstock.log.protocol import OrderedLog


def staged_path(log: OrderedLog, lineage: Lineage, batch: int) -> Path:
    """What the names of a batch's files begin with."""
    return _folder(log, lineage) / f"{_mine(lineage)}{batch}"


def remove_unused(log: OrderedLog, lineage: Lineage) -> None:
    for path in _folder(log, lineage).glob(f"*{_mine(lineage)}*"):
        taken, _, given = path.name.rpartition("+")
        if given.startswith(_mine(lineage)) and not (taken and _is_used(log, lineage, path.name, given)):
            path.unlink(missing_ok=True)


def _folder(log: OrderedLog, lineage: Lineage) -> Path:
    return lineage.folder / "changes" if lies_in_kafka(log.folder) else log.folder / "staged"


def _mine(lineage: Lineage) -> str:
    return f"{lineage.pipeline}~{lineage.number}~"  # no pipeline has a tilde in its name


def _is_used(log: OrderedLog, lineage: Lineage, name: str, given: str) -> bool:
    header = log.find(lineage.producer, int(given.split("~")[2]))
    return header is not None and name in [block.file for block in header.blocks]
