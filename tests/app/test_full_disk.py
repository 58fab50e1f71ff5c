"""A pipeline on a file system that really is full ends with a clear error, and goes on when there is room."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.log import Log
from tests.small import small_file_system

PENSTOCK = [sys.executable, "-c", "from penstock.cli import main; main()"]
pytestmark = pytest.mark.spark


def penstock(folder: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command, pipes = [*PENSTOCK, *arguments], {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.run(command, cwd=folder, input=given, text=True, timeout=200, check=False, **pipes)  # type: ignore[call-overload,no-any-return]


def append(folder: Path, topic: str, *rows: dict[str, object]) -> None:
    done = penstock(folder, "log", "append", topic, given="\n".join(map(json.dumps, rows)))
    assert done.returncode == 0, done.stderr


def test_a_run_that_finds_no_room_says_so_and_goes_on_when_there_is(tmp_path: Path) -> None:
    with small_file_system(tmp_path / "small", 16) as small:
        assert penstock(small.path, "init", "shop").returncode == 0
        shop = small.path / "shop"
        append(shop, "customers", {"id": 1, "name": "ann", "city": "Rome"})
        append(shop, "orders", *({"id": n, "customer": 1, "amount": "1.00"} for n in range(100)))
        small.fill(leave=60_000)
        refused = penstock(shop, "run", "--once")
        assert refused.returncode == 1 and "Traceback" not in refused.stderr
        assert "No space left on device" in refused.stderr, refused.stderr
        small.make_room()
        done = penstock(shop, "run", "--once")
        assert done.returncode == 0, done.stderr
        (row,) = map(json.loads, penstock(shop, "view", "spend_by_city", "--format", "json").stdout.splitlines())
        assert (row["city"], row["spend"]) == ("Rome", "100.00")
        with Log.open(shop / ".penstock" / "log") as log:
            assert not any(found.damage for found in log.check()) and log.set_aside() == []
