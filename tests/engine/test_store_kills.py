"""Killed at any moment, runs whose tables are in PostgreSQL or Redis lose nothing and double nothing, while the servers
are killed too; and a webhook tells of every change, some of them twice.

The soak kills sixty runs; continuous integration one with each store, at a moment or at a stage. Seeds, deaths and
outcomes of all stories are in results/store_kills.json, which a soak of all of them writes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Protocol

import pytest
from pyspark.sql import SparkSession

from penstock.app.stores import position_of, reader_of
from penstock.engine.stages import Stage
from penstock.log import Log
from penstock.model.stores import OnPostgres, OnRedis, OnServer
from penstock.views import changes
from penstock.views.sinks.news import news_of
from tests.app.receivers import SECRET, Receiver, receiving
from tests.effort import SOAK
from tests.engine.business import SETTINGS
from tests.engine.crashing import Death, drained, run_and_die, write_stories
from tests.engine.shop import DECLARATIONS, Shop
from tests.views import postgres, redis
from tests.views.shop import counted, folded

RESULTS = Path(__file__).parent / "results" / "store_kills.json"
KINDS = {"postgres": pytest.mark.postgres, "redis": pytest.mark.redis}
SEEDS = range(1, 7) if SOAK else range(1, 2)
KILLS = 5 if SOAK else 1
pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]


class Server(Protocol):
    def start(self) -> None: ...
    def kill(self) -> None: ...


@dataclass
class ServerShop(Shop):
    """Its tables are on a server that is killed now and then while records come."""

    where: OnServer = field(default_factory=lambda: OnRedis(""))
    server: Server | None = None
    frailty: Random = field(default_factory=Random)
    due: bool = False
    outages: int = 0

    def append(self, log: Log, frames: int = 1) -> None:
        super().append(log, frames)
        if self.server is not None and (self.due or self.frailty.random() < 0.1):
            self.due = False
            self.outages += 1
            self.server.kill()
            self.server.start()

    def check_store(self, log: Log) -> int:
        """As for a store in a file: what it holds is what the topics add up to at its position."""
        position = position_of(self.where, self.folder.name)
        if position is None or position.batch is None:
            return -1
        for view in self.pipeline.views:
            with reader_of(self.where, self.folder.name, view.name) as reader:
                answer = reader.rows(view.name)
            assert answer.position == position
            assert counted(answer) == folded(log, self.topic(view.name), until=position.frame), view.name
        return position.batch


@pytest.fixture(scope="module")
def stories() -> Iterator[list[dict[str, Any]]]:
    """What is known of the stories; after a soak of all of them it becomes the result."""
    told: list[dict[str, Any]] = []
    yield told
    if SOAK and len(told) == len(KINDS) * len(SEEDS):
        write_stories(RESULTS, told)


@contextmanager
def served(kind: str) -> Iterator[tuple[OnServer, Server]]:
    if kind == "postgres":
        for server in postgres.server_for_tests():
            yield OnPostgres(server.url()), server
    else:
        for redis_server in redis.server_for_tests():
            yield OnRedis(redis_server.url), redis_server


def made(folder: Path, seed: int, where: OnServer, receiver: Receiver) -> ServerShop:
    folder.mkdir()
    (folder / "secrets").write_text(SECRET)
    hook = f"WITH (webhook = '{receiver.url}', webhook_secrets = 'secrets')"
    shop = ServerShop(folder, Random(seed), {**SETTINGS, "store": where.url}, where=where, frailty=Random(seed))
    shop.declarations = DECLARATIONS.replace("CREATE VIEW spend AS", f"CREATE VIEW spend {hook} AS")  # type: ignore[misc]
    shop.declare(max_records_per_batch=8)
    return shop


def deaths(random: Random, kind: str) -> list[Death]:
    """Stages and moments that nobody chose; where Python dies alone, Java is there a while longer."""
    if not SOAK:  # one of each kind, after which the store is looked at
        moment = Death(seconds=random.uniform(0.5, 3))
        return [moment if kind == "postgres" else Death(random.choice(list(Stage)), count=random.randrange(1, 4))]
    stages = random.sample(list(Stage), len(Stage))
    found = [Death(stage, count=random.randrange(1, 4), alone=random.random() < 0.4) for stage in stages]
    found += [Death(seconds=random.uniform(0, 4), alone=random.random() < 0.4) for _ in range(KILLS)]
    return random.sample(found, KILLS)


def check_after_death(shop: ServerShop, log: Log, death: Death, batch: int | None, before: int) -> int:
    """The last batch in the store, -1 for none. What PostgreSQL has taken it has still, though it was killed; Redis may
    have lost what it took last, but not everything.
    """
    stored = shop.check_store(log)
    told = batch if batch is not None and death.stage in (None, Stage.STORED) else -1
    taken = max(before, told)
    assert stored >= (taken if isinstance(shop.where, OnPostgres) else min(taken, 0))
    return stored


def check_told(shop: ServerShop, log: Log, receiver: Receiver) -> None:
    """Every change was posted, in the order in which they first came that of the log."""
    first: dict[str, Any] = {}
    for each in receiver.taken:
        assert each.verified(SECRET) == first.setdefault(each.id, each.event)
    news = list(news_of(changes(log, shop.folder.name, "spend")))
    assert list(first) == [each.identity(shop.folder.name) for each in news]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=mark) for kind, mark in KINDS.items()])
def test_runs_that_are_killed_leave_stores_that_equal_the_oracle(
    kind: str, seed: int, tmp_path: Path, spark: SparkSession, stories: list[dict[str, Any]]
) -> None:
    kills, held = list[dict[str, Any]](), -1
    stories.append({"store": kind, "seed": seed, "kills": kills, "outcome": "not equal to the oracle"})
    with served(kind) as (where, server), receiving() as receiver:
        shop = made(tmp_path / "shop", seed, where, receiver)
        with shop.opened() as log:
            shop.append(log, frames=10)
            shop.server = server
            for death in deaths(Random(f"{kind} {seed}"), kind):
                shop.due, shop.outages = True, 0  # once in every run, and then by chance
                batch = run_and_die(shop, log, death)
                kills.append({**death.told(), "batch": batch, "server killed": shop.outages})
                if not death.alone:
                    kills[-1]["stored"] = check_after_death(shop, log, death, batch, held)
                    held = max(held, kills[-1]["stored"])
            shop.server = None
            code, said = drained(shop)
            assert code == 0, said
            shop.check_end(log, spark)
            check_told(shop, log, receiver)
    stories[-1]["outcome"] = "equal to the oracle"
