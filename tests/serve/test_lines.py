"""Lines for programs: every line on standard error is an object, from first to last, whatever ends the command."""

import json
import os
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.cli import main
from penstock.errors import EngineError, Spot
from penstock.serve.telling import parts_of, teller
from tests.serve.client import Client
from tests.serve.conftest import Place

JSON = ("--log-format", "json")
MAIN = [sys.executable, "-c", "from penstock.cli import main; main()"]


@pytest.mark.parametrize("command", ["run", "serve"])
def test_what_is_refused_is_a_line_too(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, str(tmp_path), *JSON])
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    told = json.loads(line)
    assert (told.pop("level"), told.pop("event")) == ("error", "failed")
    assert datetime.fromisoformat(told.pop("time")).tzinfo is not None
    assert told == {
        "primary": f'there is no pipeline in "{tmp_path}"',
        "detail": "It has no .sql and no .py files.",
        "hint": "Go to a pipeline's folder or name it, or make one: penstock init DIR",
    }


def test_a_server_tells_its_life_in_lines(place: Place) -> None:
    place.keep()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK")}
    command = [*MAIN, "serve", str(place.folder), "--bind", "127.0.0.1:0", "--log-requests", *JSON]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stderr is not None
            serving = json.loads(process.stderr.readline())
            assert Client(serving["url"]).get("/health").status == 200
            process.send_signal(signal.SIGTERM)
            rest: list[Any] = [json.loads(line) for line in process.stderr]
            assert process.wait(timeout=20) == 130
        finally:
            process.kill()
    assert [(each["level"], each["event"]) for each in (serving, *rest)] == [
        ("info", "serving"),
        ("info", "request"),
        ("info", "stopping"),
    ]


def test_events_have_levels_and_errors_their_place() -> None:
    lines: list[str] = []
    tell = teller("json", lines.append)
    tell("trouble", **parts_of(EngineError("no", detail="it.", hint="do", spot=Spot("p.sql", 3, 7, "SELECT"))))
    tell("progress", watermarks={"orders": datetime(2024, 1, 31, 12)})
    trouble, progress = map(json.loads, lines)
    assert (trouble["level"], trouble["primary"], trouble["at"]) == ("warning", "no", "p.sql:3:7")
    assert (progress["level"], progress["watermarks"]) == ("info", {"orders": "2024-01-31T12:00:00"})
