"""A follower, and the server that it writes to, are killed again and again at any point: nothing is lost or doubled."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

from penstock.log import Log
from penstock.views import catch_up
from penstock.views.postgres import PostgresStore, position_in, views_in
from services.postgres import Server
from tests.effort import SOAK
from tests.views.postgres import contents_in
from tests.views.shop import VIEWS, Shop, Story, folded

SEED = 3
KILLS = 60 if SOAK else 4
FOLLOWER = """
import sys, time
from penstock.errors import ViewError
from penstock.log import Log
from penstock.views import follow
from penstock.views.postgres import PostgresStore
with Log.open(sys.argv[1], create=False) as log, PostgresStore(sys.argv[2], sys.argv[3]) as store:
    print("ready", flush=True)
    tell = lambda position: print(position.frame, flush=True)
    while True:
        try:
            follow(log, "shop", store, stop=lambda: False, on_step=tell, together=int(sys.argv[4]))
        except ViewError:
            time.sleep(0.02)
"""


def follow_and_be_killed(
    log: Log, server: Server, schema: str, *, together: int, steps: int, meanwhile: Callable[[], None]
) -> None:
    """Follows in a process of its own, which is killed when it has told of so many steps and `meanwhile` is over."""
    command = [sys.executable, "-c", FOLLOWER, str(log.folder), server.url(), schema, str(together)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(1 + steps)]
        meanwhile()
        os.kill(process.pid, signal.SIGKILL)
    assert all(lines)


def check_prefix(log: Log, server: Server, schema: str) -> int:
    """The store holds what the topics add up to at its position; how many batches it has."""
    position = position_in(server.url(), schema)
    if position is None:
        return 0
    for view in views_in(server.url(), schema):
        topic = f"shop.{position.lineage}.{view.name}"
        assert contents_in(server.url(), schema, view.name) == folded(log, topic, until=position.frame)
    return (position.batch or 0) + 1


def restart(server: Server) -> None:
    server.kill()
    server.start()


def test_killed_at_random_points_the_store_equals_the_topics_in_the_end(
    log: Log, shop: Shop, postgres: Server, schema: str
) -> None:
    chance = random.Random(SEED)
    story = Story(shop, SEED)
    seen: set[int] = set()
    for kill in range(KILLS):
        if kill == KILLS // 2:  # a reset, and the switch to it, among the kills
            shop = Shop(log, lineage=2)
            story = Story(shop, SEED + 1)
            story.go_on(100, rows=6)
            shop.announce()
        story.go_on(60, rows=6)
        steps, together = chance.choice([0, 1, 5, 20, 40]), chance.choice([1, 1, 7, 500])
        wait = partial(time.sleep, chance.uniform(0, 0.1))
        ways = [wait, partial(story.go_on, chance.randrange(9)), partial(restart, postgres)]
        meanwhile = ways[2] if kill == 1 else chance.choice(ways)
        follow_and_be_killed(log, postgres, schema, together=together, steps=steps, meanwhile=meanwhile)
        seen.add(check_prefix(log, postgres, schema))
    assert len(seen) > 2  # it died at different points
    with PostgresStore(postgres.url(), schema) as store:
        catch_up(log, "shop", store)
    for view in VIEWS:
        assert contents_in(postgres.url(), schema, view) == folded(log, shop.topic(view))
