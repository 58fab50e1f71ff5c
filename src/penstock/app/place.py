"""Where things lie: a pipeline's folder, and what Penstock keeps for it.

    shop/pipeline.sql             what the user wrote
    shop/.penstock/log            the log, unless the pipeline or the command names another
    shop/.penstock/views.sqlite   the answers
    shop/.penstock/files          those that are kept as files
    shop/.penstock/lineages       checkpoints

A pipeline that is one file of another name (`shop/spend.sql`) has its answers and checkpoints under that name
(`shop/.penstock/spend`), so that several can lie side by side and share a log.
"""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import ModelError, PenstockError
from penstock.model import Pipeline, load_pipeline

HOME = ".penstock"
WHOLE = "pipeline"
"""`shop/pipeline.sql` is the pipeline of the folder."""


@dataclass(frozen=True)
class Place:
    """What the user named, its folder, and the folder of what is kept for it."""

    path: Path
    folder: Path
    home: Path

    def __str__(self) -> str:
        """The path as one writes it in a command."""
        return shlex.quote(str(self.path))

    @property
    def store(self) -> Path:
        return self.home / "views.sqlite"

    @property
    def files(self) -> Path:
        return self.home / "files"

    def log(self, pipeline: Pipeline, given: Path | None = None) -> Path:
        """The folder of the log: as the command says, else as the pipeline says, else at home."""
        return given or self.folder / (pipeline.options.log or Path(HOME) / "log")

    @contextmanager
    def hinted(self) -> Iterator[None]:
        """What is raised inside has hints that can be typed."""
        try:
            yield
        except PenstockError as error:
            self.name_in(error)
            raise

    def name_in(self, error: PenstockError) -> None:
        """Hints of the rooms upstream speak of PIPELINE, for they know no paths: it is named in them."""
        error.hint = error.hint.replace("PIPELINE", str(self))


def place_of(path: Path) -> Place:
    """The place of a pipeline: a folder, or one file."""
    alone = path.is_file() and path.stem != WHOLE
    folder = path.parent if path.is_file() else path
    return Place(path, folder, folder / HOME / path.stem if alone else folder / HOME)


def log_in(folder: Path) -> Path | None:
    """The log of the pipeline in a folder; None where there is neither."""
    place = place_of(folder)
    shared = place.home / "log"
    if shared.is_dir():  # nothing of the pipeline is read or run for it: it may be in the middle of being mended
        return shared
    try:
        return place.log(load_pipeline(folder)) if place.home.is_dir() else None
    except ModelError:
        return None
