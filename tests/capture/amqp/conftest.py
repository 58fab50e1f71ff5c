"""RabbitMQ for the tests of this process. Where there is none to be had, the tests are skipped; with
PENSTOCK_SERVICES=required they fail.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.log import Log
from services.jars import ServiceError
from services.rabbitmq import Broker, broker_in
from tests.capture.amqp.rabbit import SCHEMA, Rabbit


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "broker" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.rabbitmq)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The broker of this process. A test that kills it leaves it whole."""
    try:
        made = broker_in(tmp_path_factory.mktemp("rabbitmq"), dies_with_us=True)
    except ServiceError as error:
        if os.environ.get("PENSTOCK_SERVICES") == "required":
            raise
        pytest.skip(f"no RabbitMQ: {error.primary}")
    made.start()
    yield made
    made.kill()


@pytest.fixture
def rabbit(broker: Broker) -> Rabbit:
    return Rabbit(broker)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """A log with the topic `things`."""
    with Log.open(tmp_path / "log") as log:
        log.create_topic("things", SCHEMA)
        yield log
