"""Telling: what a server or a run does, line by line on standard error, as text or as JSON."""

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from penstock.errors import PenstockError
from penstock.serve.settings import Form

Tell = Callable[..., None]
"""`tell("request", status=200)`"""
LEVELS = {"trouble": "warning", "waiting": "warning", "warning": "warning", "failure": "error", "failed": "error"}
"""Of events that are more than news."""


def _written(line: str) -> None:
    sys.stderr.write(line)


def teller(form: Form, write: Callable[[str], Any] = _written) -> Tell:
    def tell(event: str, **facts: Any) -> None:
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if form == "json":
            told = {"time": time, "level": LEVELS.get(event, "info"), "event": event, **facts}
            line = json.dumps(told, ensure_ascii=False, default=_plain)
        else:
            line = " ".join([time, event, *(f"{name}={_text(value)}" for name, value in facts.items())])
        write(line + "\n")

    return tell


def parts_of(error: PenstockError) -> dict[str, str]:
    """An error as the facts of an event."""
    spot = {} if error.spot is None else {"at": str(error.spot)}
    return {"primary": error.primary, "detail": error.detail, "hint": error.hint, **spot}


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _text(value: Any) -> str:
    text = str(value)
    return text if text.isprintable() and text and " " not in text else json.dumps(text)
