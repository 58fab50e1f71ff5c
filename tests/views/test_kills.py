"""A follower that is killed again and again, at any point, loses nothing and doubles nothing.

A killed process leaves to the operating system what it has written; that a power failure leaves it on disk too rests on
SQLite's synchronous = FULL, which syncs before a commit returns.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from penstock.log import Log
from penstock.views import SqliteStore, ViewReader, catch_up
from tests.effort import SOAK
from tests.views.shop import VIEWS, Shop, Story, counted, folded

SEED = 1
KILLS = 60 if SOAK else 6
FOLLOWER = """
import sys
from penstock.log import Log
from penstock.views import SqliteStore, follow
with Log.open(sys.argv[1], create=False) as log, SqliteStore(sys.argv[2]) as store:
    print("ready", flush=True)
    tell = lambda position: print(position.frame, flush=True)
    follow(log, "shop", store, stop=lambda: False, on_step=tell, together=int(sys.argv[3]))
"""


def follow_and_be_killed(log: Log, path: Path, *, together: int, steps: int, meanwhile: Callable[[], None]) -> None:
    """Follows in a process of its own, which is killed when it has told of so many steps and `meanwhile` is over."""
    command = [sys.executable, "-c", FOLLOWER, str(log.folder), str(path), str(together)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(1 + steps)]
        meanwhile()
        os.kill(process.pid, signal.SIGKILL)
    assert all(lines)


def check_prefix(log: Log, path: Path) -> int:
    """The store holds what the topics add up to at its position; how many batches it has."""
    with ViewReader(path) as reader:
        answers = {view.name: reader.rows(view.name) for view in reader.views()}
        position = reader.position()
    if position is None:
        return 0
    for view, answer in answers.items():
        assert counted(answer) == folded(log, f"shop.{position.lineage}.{view}", until=position.frame)
    return (position.batch or 0) + 1


def test_killed_at_random_points_the_store_equals_the_topics_in_the_end(log: Log, shop: Shop, path: Path) -> None:
    chance = random.Random(SEED)
    story = Story(shop, SEED)
    SqliteStore(path).close()
    seen = []
    for kill in range(KILLS):
        if kill == KILLS // 2:  # a reset, and the switch to it, among the kills
            shop = Shop(log, lineage=2)
            story = Story(shop, SEED + 1)
            story.go_on(100, rows=6)
            shop.announce()
        story.go_on(60, rows=6)
        steps, together = chance.choice([0, 1, 5, 20, 40]), chance.choice([1, 1, 7, 500])
        wait = partial(time.sleep, chance.uniform(0, 0.1))
        meanwhile = chance.choice([wait, partial(story.go_on, chance.randrange(9))])
        follow_and_be_killed(log, path, together=together, steps=steps, meanwhile=meanwhile)
        seen.append(check_prefix(log, path))
    assert len(set(seen)) > 2  # it was killed at different points
    with SqliteStore(path) as store:
        catch_up(log, "shop", store)
    for view in VIEWS:
        with ViewReader(path) as reader:
            assert counted(reader.rows(view)) == folded(log, shop.topic(view))
