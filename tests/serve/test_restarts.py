"""Servers that are killed and started again, in processes of their own: readers miss nothing and see nothing twice."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from random import Random
from threading import Thread

import pytest

from penstock.views import changes
from tests.serve.client import Client, Event
from tests.serve.conftest import Place
from tests.views.shop import Story

MAIN = [sys.executable, "-c", "from penstock.cli import main; main()", "serve"]
Ending = signal.Signals


@contextmanager
def server(place: Place, *more: str) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    """A server in a process of its own, which is gone in the end."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK")}
    command = [*MAIN, str(place.folder), "--bind", "127.0.0.1:0", *more]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert said.startswith("serving at http://127.0.0.1:"), said + process.stderr.read()
            yield process, Client(said.split()[-1])
        finally:
            process.kill()


def test_a_server_that_is_told_to_stop_ends_its_streams(place: Place) -> None:
    place.keep()
    with server(place) as (process, client), client.follow("spend") as following:
        assert [event.kind for event in following.take(1)] == ["start"]
        process.send_signal(signal.SIGTERM)
        assert list(following.events()) == []
        assert process.wait(timeout=20) == 130


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_across_kills_every_change_comes_once(place: Place, how: Ending) -> None:
    place.keep()
    story, random = Story(place.shop, seed=7), Random(7)
    seen: list[str] = []
    writing = Thread(target=lambda: story.go_on(40))
    for _ in range(3):
        with server(place) as (process, client):
            last = {} if not seen else {"last": seen[-1]}
            with client.follow("spend", **({} if seen else {"from": "0"}), **last) as following:
                if not seen:
                    writing.start()
                _read(following.events(), seen, random.randrange(4, 12))
                process.send_signal(how)
    writing.join()
    with server(place) as (_, client), client.follow("spend", last=seen[-1]) as following:
        want = _all_ids(place)
        _read(following.events(), seen, len(want) - len(seen))
    assert seen == want


def _read(events: Iterator[Event], seen: list[str], count: int) -> None:
    """What comes, up to so many; less if the server is gone."""
    if count <= 0:
        return
    try:
        for event in events:
            if event.kind != "start":
                seen.append(event.id)
                count -= 1
            if count <= 0:
                return
    except (OSError, HTTPException):
        return


def _all_ids(place: Place) -> list[str]:
    found: list[str] = []
    for change in changes(place.log, "shop", "spend"):
        frame = str(change.position.frame)
        if found and found[-1].split(":")[0] != frame:
            found.append(found[-1].split(":")[0])
        found.append(f"{frame}:{change.index}")
    return [*found, found[-1].split(":")[0]]
