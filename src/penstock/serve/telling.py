"""Telling: what the server does, line by line on standard error, as text or as JSON."""

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from penstock.serve.settings import Form

Tell = Callable[..., None]
"""`tell("request", status=200)`"""


def teller(form: Form, write: Callable[[str], Any] = sys.stderr.write) -> Tell:
    def tell(event: str, **facts: Any) -> None:
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if form == "json":
            line = json.dumps({"time": time, "event": event, **facts}, ensure_ascii=False, default=str)
        else:
            line = " ".join([time, event, *(f"{name}={_text(value)}" for name, value in facts.items())])
        write(line + "\n")

    return tell


def _text(value: Any) -> str:
    text = str(value)
    return text if text.isprintable() and text and " " not in text else json.dumps(text)
