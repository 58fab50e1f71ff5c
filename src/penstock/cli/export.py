"""`penstock view --export`: the rows of a view as one file, with the position at which they are right.

The file is there whole or not at all, also after a crash: it is written under another name, synced, and then renamed.
Until then one that was there before stays.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from penstock.errors import CommandError
from penstock.views.query import Answer

Write = Callable[[pa.Table, str], None]
WRITERS: dict[str, Write] = {
    ".parquet": pq.write_table,
    ".arrow": lambda table, path: pyarrow.feather.write_feather(table, path, compression="uncompressed"),
}


def check_can_export(path: Path) -> None:
    if path.suffix not in WRITERS:
        raise CommandError(
            f'"{path}" names no form for rows', hint=f"Name a file that ends in {' or '.join(sorted(WRITERS))}."
        )


def export(answer: Answer, path: Path) -> None:
    """Writes the rows; what the file says of itself tells view, log and position."""
    position = answer.position
    facts = {"view": answer.view.name, "log": position.log, "position": f"{position.lineage}.{position.frame}"}
    table = answer.table.replace_schema_metadata({f"penstock.{name}": value for name, value in facts.items()})
    unfinished = path.with_name(f".{path.name}.new")
    try:
        WRITERS[path.suffix](table, str(unfinished))
        for each in (unfinished, path.parent):
            _sync(each)
        unfinished.replace(path)
        _sync(path.parent)
    except OSError as error:
        raise CommandError(f'"{path}" cannot be written', detail=f"{error.strerror or error}.") from error
    finally:
        with suppress(OSError):  # it has its name by now, or there was no place for it
            unfinished.unlink()


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
