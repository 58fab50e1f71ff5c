"""A service from a terminal: `python -m services.NAME start`, `stop`."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from services.jars import ServiceError


class Service(Protocol):
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def pid(self) -> int | None: ...


def command(words: Sequence[str], usage: str | None, *, start: Callable[[], None], stop: Callable[[], None]) -> int:
    """Does what the first word says; what the program is to end with."""
    try:
        match words[:1]:
            case ["start"]:
                start()
            case ["stop"]:
                stop()
            case _:
                print(usage, file=sys.stderr)
                return 2
    except ServiceError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def say(text: str) -> None:
    print(text, flush=True)


def start(name: str, service: Service, url: Callable[[], str]) -> None:
    before = service.pid() is not None
    if not before:
        say(f"starting {name}")
    service.start()
    say(f"{name} {'runs already' if before else 'is ready'}: {url()}")


def stop(name: str, pid_file: Path, service: Callable[[], Service]) -> None:
    """Ends it if it runs; where it never did, nothing is fetched to find that out."""
    if not pid_file.exists():
        say(f"{name} does not run")
        return
    found = service()
    running = found.pid() is not None
    found.stop()
    say(f"{name} is stopped" if running else f"{name} does not run")
