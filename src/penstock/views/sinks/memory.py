"""The memory of a sink: how far it has come, how often it has tried the next thing, and whether it was told to stop.

One small file, replaced whole and durably. Without a file a sink begins with what comes from now on: who adds one to a
view that is a year old does not want a year of messages.
"""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from penstock.errors import ViewError
from penstock.log import Place
from penstock.log.disk import Disk
from penstock.log.protocol import OrderedLog

FORMAT = 1
LATE_FRAMES = 1000
"""So many frames without news may be looked at again after a crash."""


@dataclass(frozen=True)
class Held:
    """What is in the file: the log, the place from which on nothing was delivered, the failed attempts of what is
    there, and the address that does not want anything any more, as a digest.
    """

    log: str
    frame: int
    index: int = 0
    attempts: int = 0
    refused: str = ""

    @property
    def place(self) -> Place:
        return Place(self.frame, self.index)


class Memory:
    def __init__(self, log: OrderedLog, path: Path, disk: Disk) -> None:
        self.path = path
        self._disk = disk
        found = held_in(path)
        if found is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            found = Held(log.identity, log.mark().next_frame)
            self._write(found)
        elif found.log != log.identity:
            raise ViewError(
                f'the sink of "{path}" is not one of this log',
                detail=f"It has followed log {found.log}; this one is {log.identity}.",
                hint="Take the file away: it begins with what comes from now on.",
            )
        self.held = self._written = found

    def delivered(self, up_to: Place) -> None:
        self._keep(Held(self.held.log, up_to.frame, up_to.index))

    def failed(self) -> int:
        """One more attempt has failed; how many that are."""
        self._keep(replace(self.held, attempts=self.held.attempts + 1))
        return self.held.attempts

    def refused(self, address: str) -> None:
        self._keep(replace(self.held, refused=address))

    def wanted(self) -> None:
        self._keep(replace(self.held, refused=""))

    def passed(self, frame: int, *, now: bool = False) -> None:
        """Nothing is left before the frame. It is written down now and then, for it can be found out again."""
        if frame > self.held.frame:
            self.held = Held(self.held.log, frame)
        if self.held != self._written and (now or self.held.frame >= self._written.frame + LATE_FRAMES):
            self._keep(self.held)

    def _keep(self, held: Held) -> None:
        self._write(held)
        self.held = self._written = held

    def _write(self, held: Held) -> None:
        _write(self._disk, self.path, held)


class Notes:
    """Of a sink that keeps its place elsewhere: how far it is, and how often it has failed since, for those who watch.
    What is in the file counts for nobody else: where it cannot be written, it is as it was, and nothing stops. Without
    one, nothing has gone out yet.
    """

    def __init__(self, log: OrderedLog, path: Path, disk: Disk) -> None:
        self._log = log
        self._path = path
        self._disk = disk

    def reached(self, place: Place) -> None:
        self._keep(Held(self._log.identity, place.frame, place.index))

    def failed(self) -> None:
        found = None
        with suppress(ViewError, OSError):  # what has failed is to be told, not this
            found = held_in(self._path)
        held = found if found is not None and found.log == self._log.identity else Held(self._log.identity, 0)
        self._keep(replace(held, attempts=held.attempts + 1))

    def _keep(self, held: Held) -> None:
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            _write(self._disk, self._path, held)


def _write(disk: Disk, path: Path, held: Held) -> None:
    disk.write_whole(path, json.dumps({"format": FORMAT, **asdict(held)}).encode())


def held_in(path: Path) -> Held | None:
    """What is in the file; None where there is none."""
    try:
        found = json.loads(path.read_bytes())
        if found.pop("format") != FORMAT:
            raise ValueError("another format")
        return Held(**found)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ViewError(
            f'"{path}" cannot be read',
            detail=f"{type(error).__name__}: {error}.",
            hint="Take the file away: the sink begins with what comes from now on.",
        ) from error
