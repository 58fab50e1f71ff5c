"""Where things lie: a pipeline's folder, and what Penstock keeps for it.

    shop/pipeline.sql             what the user wrote
    shop/.penstock/log            the log, unless the pipeline or the command names another
    shop/.penstock/views.sqlite   the answers
    shop/.penstock/lineages       checkpoints

A pipeline that is one file of another name (`shop/spend.sql`) has its answers and checkpoints under that name
(`shop/.penstock/spend`), so that several can lie side by side and share a log.
"""

from dataclasses import dataclass
from pathlib import Path

from penstock.model import Pipeline

HOME = ".penstock"
WHOLE = "pipeline"
"""`shop/pipeline.sql` is the pipeline of the folder."""


@dataclass(frozen=True)
class Place:
    """What the user named, its folder, and the folder of what is kept for it."""

    path: Path
    folder: Path
    home: Path

    @property
    def store(self) -> Path:
        return self.home / "views.sqlite"

    def log(self, pipeline: Pipeline, given: Path | None = None) -> Path:
        """The folder of the log: as the command says, else as the pipeline says, else at home."""
        return given or self.folder / (pipeline.options.log or Path(HOME) / "log")


def place_of(path: Path) -> Place:
    """The place of a pipeline: a folder, or one file."""
    alone = path.is_file() and path.stem != WHOLE
    folder = path.parent if path.is_file() else path
    return Place(path, folder, folder / HOME / path.stem if alone else folder / HOME)
