"""A disk that kills its process at one of its operations, and the child processes that die so."""

import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Lock

from penstock.log.disk import Disk

HOW = ("before", "half", "after")


class DyingDisk(Disk):
    """Dies by SIGKILL at its `nth` operation: before it, after it, or halfway through a write.

    It does not sync: what a killed process has written is in the files all the same.
    """

    def __init__(self, nth: int, how: str = "before") -> None:
        self.done, self._nth, self._how = 0, nth, how
        self._lock = Lock()

    def _step(self, act: Callable[[], object], half: Callable[[], object] = lambda: None) -> None:
        with self._lock:
            self.done += 1
            if self.done != self._nth:
                act()
                return
            if self._how != "before":
                (half if self._how == "half" else act)()
            os.kill(os.getpid(), signal.SIGKILL)

    def open(self, path: Path, *, create: bool = False) -> int:
        if create and not path.exists():
            self._step(lambda: os.close(Disk.open(self, path, create=True)))
        return super().open(path, create=create)

    def write(self, file: int, pieces: Sequence[bytes], at: int) -> None:
        data = b"".join(pieces)
        self._step(lambda: os.pwrite(file, data, at), lambda: os.pwrite(file, data[: len(data) // 2], at))

    def truncate(self, file: int, length: int) -> None:
        self._step(lambda: os.ftruncate(file, length))

    def sync(self, file: int) -> None:
        self._step(lambda: None)

    def sync_folder(self, folder: Path) -> None:
        self._step(lambda: None)

    def rename(self, old: Path, new: Path) -> None:
        self._step(lambda: os.rename(old, new))

    def remove(self, path: Path) -> None:
        self._step(lambda: Disk.remove(self, path), lambda: _remove_half(path))


def _remove_half(path: Path) -> None:
    """What is left when the removal of a folder dies in the middle."""
    inside = sorted(path.iterdir()) if path.is_dir() else []
    for each in inside[: len(inside) // 2]:
        shutil.rmtree(each) if each.is_dir() else each.unlink()


def _send(pipe: int, number: int) -> None:
    os.write(pipe, number.to_bytes(4))


def in_child(act: Callable[..., None], *given: object) -> tuple[int, bool]:
    """Runs `act` in a forked process. The last number that it told to its first argument, and whether it was killed."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act(partial(_send, send), *given)
            code = 0
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(code)
    os.close(send)
    told = b""
    while data := os.read(receive, 4096):
        told += data
    os.close(receive)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), f"the child ended with {status}"
    return int.from_bytes(told[-4:]), status != 0
