"""Where things lie: a pipeline's folder, and what Penstock keeps for it.

    shop/pipeline.sql             what the user wrote
    shop/.penstock/log            the log, unless the pipeline or the command names another
    shop/.penstock/mirror         what a log on Kafka says of its order; it fills itself
    shop/.penstock/views.sqlite   the answers
    shop/.penstock/served.sqlite  the same for who asks over HTTP, where the answers are elsewhere
    shop/.penstock/files          those that are kept as files
    shop/.penstock/sinks          how far webhooks and e-mails have come, and for those who watch, Kafka
    shop/.penstock/lineages       checkpoints, unless the pipeline names a folder for them

A pipeline that is one file of another name (`shop/spend.sql`) has its answers and checkpoints under that name
(`shop/.penstock/spend`), so that several can lie side by side and share a log.
"""

import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, Unpack

from penstock.errors import ModelError, PenstockError
from penstock.log.opening import How
from penstock.log.where import OnKafka, Where, where_of
from penstock.model import Pipeline, load_pipeline

HOME = ".penstock"
WHOLE = "pipeline"
"""`shop/pipeline.sql` is the pipeline of the folder."""
SETTINGS = "PENSTOCK_KAFKA_SETTINGS"
"""The environment variable that names a file with settings of Kafka's client."""


class Opening(TypedDict, total=False):
    """See `How`."""

    say: Callable[[str], None] | None
    admits: bool
    owner: str | None


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
    def served(self) -> Path:
        return self.home / "served.sqlite"

    @property
    def files(self) -> Path:
        return self.home / "files"

    @property
    def sinks(self) -> Path:
        return self.home / "sinks"

    def log(self, pipeline: Pipeline, given: str | Path | None = None) -> Where:
        """Where the log is: as the command says, else as the pipeline says, else at home."""
        named = pipeline.options.log or Path(HOME) / "log" if given is None else where_of(given)
        return named if isinstance(named, OnKafka) or given is not None else self.folder / named

    def checkpoints(self, pipeline: Pipeline) -> Path:
        """Where lineages lie: at home, or in the folder that the pipeline names, under its own name there. Executors,
        who stand elsewhere, are told of it.
        """
        named = pipeline.options.checkpoints
        return (self.home if named is None else self.folder / named / pipeline.name).absolute()

    def opening(self, pipeline: Pipeline, **how: Unpack[Opening]) -> How:
        """What a log on Kafka is opened with; its mirror lies at home, and settings of the client in the file that the
        environment or the pipeline names.
        """
        named = pipeline.options.kafka_settings
        settings = self.folder / named if named else None
        if SETTINGS in os.environ:
            settings = Path(os.environ[SETTINGS])
        return How(self.home / "mirror", settings, **how)

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


def log_in(folder: Path) -> Where | None:
    """The log of the pipeline in a folder; None where there is neither."""
    place = place_of(folder)
    shared = place.home / "log"
    if shared.is_dir():  # nothing of the pipeline is read or run for it: it may be in the middle of being mended
        return shared
    try:
        return place.log(load_pipeline(folder)) if place.home.is_dir() else None
    except ModelError:
        return None
