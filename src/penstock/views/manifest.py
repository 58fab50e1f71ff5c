"""Manifests: what a folder of files holds: the position, the views, and the files that the last call brought.

A manifest appears whole, by one rename, and with it the call has happened: whatever of its files still waits to be
moved to its place will be.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock.errors import ViewError
from penstock.schema import parse_schema
from penstock.views.step import Position, View

MANIFEST = "_penstock.json"
FORMAT = 1


@dataclass(frozen=True)
class Manifest:
    """`files` are paths inside the folder, of files that may still be in its staging."""

    position: Position
    views: Mapping[str, View]
    files: tuple[str, ...] = ()

    def text(self) -> str:
        views = {
            name: {"schema": str(view.schema), "key": view.key, "partition_by": view.partition_by}
            for name, view in self.views.items()
        }
        parts = {"format": FORMAT, "position": asdict(self.position), "views": views, "files": self.files}
        return json.dumps(parts, indent=1)


def read_manifest(folder: Path) -> Manifest | None:
    """The folder's manifest, if it has one."""
    try:
        text = (folder / MANIFEST).read_text()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        found: dict[str, Any] = json.loads(text)
        number = found["format"]
        if number == FORMAT:
            views = {name: _view(name, each) for name, each in found["views"].items()}
            return Manifest(Position(**found["position"]), views, tuple(found["files"]))
    except (ValueError, KeyError, TypeError) as error:
        raise ViewError(
            f'the store "{folder.parent}" is damaged',
            detail=f"{folder / MANIFEST} cannot be read: {type(error).__name__}: {error}.",
            hint="Take it away: a new one fills itself from the log.",
        ) from error
    raise ViewError(
        f'"{folder.parent}" has format {number}',
        detail=f"This version of Penstock knows format {FORMAT}.",
        hint="Take it away: a new one fills itself from the log.",
    )


def _view(name: str, found: Mapping[str, Any]) -> View:
    return View(name, parse_schema(found["schema"]), tuple(found["key"]), "files", tuple(found["partition_by"]))
