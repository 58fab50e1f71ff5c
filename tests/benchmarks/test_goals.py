"""What is on record of answers that reach people meets its goals, and a change that is lost on the way ends the run."""

import asyncio
import json
from asyncio import StreamReader, StreamWriter
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks import serve, stores
from benchmarks._report import RESULTS
from penstock.log import Log


@pytest.mark.parametrize(("name", "goals"), [("serve", serve.GOALS), ("stores", stores.GOALS)])
def test_the_figures_on_record_meet_their_goals(name: str, goals: Mapping[str, str]) -> None:
    figures = json.loads((RESULTS / f"{name}.json").read_text())["figures"]
    least = {key: float(goal.removeprefix(">= ").replace(",", "")) for key, goal in goals.items()}
    assert least and {key: figures[key] for key in least if figures[key] < least[key]} == {}


def test_a_change_that_does_not_arrive_ends_the_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "PATIENCE_SECONDS", 0.3)
    with Log.open(tmp_path / "log") as log, pytest.raises(TimeoutError):
        asyncio.run(followed_in_vain(serve.Shop(tmp_path, log)))


async def followed_in_vain(shop: serve.Shop) -> None:
    async def begin(_: StreamReader, writer: StreamWriter) -> None:
        writer.write(b"event: start\n\n")

    server = await asyncio.start_server(begin, "127.0.0.1", 0)
    try:
        await serve.followed(server.sockets[0].getsockname()[1], shop, followers=2, batches=1)
    finally:
        server.close()
