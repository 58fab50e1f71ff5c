"""What the tests of sinks share: a shop in a log, whose view goes somewhere."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.app.place import place_of
from penstock.app.sinks import sinks_at_work
from penstock.errors import PenstockError
from penstock.log.protocol import OrderedLog
from penstock.model import Pipeline, pipeline_of
from tests.app.receivers import Receiver
from tests.views.shop import Declared

VIEWS = {"spend": Declared("city STRING, orders BIGINT, spend DECIMAL(12,2)", key=("city",))}
LETTERS = "shop.spend.webhook.dead-letters"
SECRETS = re.compile(r"S3cret|whsec|MfKQ9r8GKYqr|C2FVsBQIhrsc")
SQL = """{settings}
CREATE STREAM orders (id BIGINT, city STRING);
CREATE VIEW spend WITH ({options}) AS SELECT city, count(*) AS orders FROM orders GROUP BY city;
"""


def declared(options: str, settings: str = "") -> Pipeline:
    return pipeline_of(SQL.format(options=options, settings=settings), name="shop")


@contextmanager
def sinking(
    log: OrderedLog, folder: Path, pipeline: Pipeline, *, to_the_end: bool = True
) -> Iterator[list[PenstockError]]:
    """Inside, the sinks are at work; what they told."""
    told: list[PenstockError] = []
    place = place_of(folder)
    place.home.mkdir(exist_ok=True)
    with sinks_at_work(place, pipeline, log, told.append, to_the_end=to_the_end):
        yield told


def soon(holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + 30
    while not holds() and time.monotonic() < until:
        time.sleep(0.005)
    return holds()


def to(receiver: Receiver, more: str = "") -> Pipeline:
    return declared(f"webhook = '{receiver.url}', webhook_secrets = 'secrets'{more}")


def check_silent(told: list[PenstockError]) -> None:
    """No secret is in what was told."""
    assert not [str(error) for error in told if SECRETS.search(str(error))]
