"""`penstock log` on Kafka: the commands that make sense there, and clear refusals of the others."""

import json
from collections.abc import Iterator
from uuid import uuid4

import pytest

from services.kafka import Cluster
from tests.cli.conftest import Penstock
from tests.log.kafka.conftest import made

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = made(tmp_path_factory.mktemp("kafka"))
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture
def shop(penstock: Penstock, kafka: Cluster, monkeypatch: pytest.MonkeyPatch) -> Penstock:
    monkeypatch.setenv("PENSTOCK_LOG", f"kafka://{kafka.servers}/{uuid4().hex[:8]}.")
    said = penstock("create", "orders", "--schema", "id BIGINT NOT NULL, city STRING", "--key", "id").out
    assert said == 'topic "orders" created: table, key id\n'
    return penstock


def test_records_go_in_and_come_out(shop: Penstock) -> None:
    rows = [{"id": 1, "city": "Rome"}, {"id": 2, "city": "Oslo"}]
    given = "\n".join(map(json.dumps, rows))
    assert shop("append", "orders", given=given).err == '2 records appended to "orders"\n'
    assert [json.loads(line) for line in shop("read", "orders").lines] == rows
    hidden = [json.loads(line) for line in shop("read", "orders", "--hidden", "--offset", "1").lines]
    assert [(row["_offset"], row["id"]) for row in hidden] == [(1, 2)] and "_place" not in hidden[0]
    shop("add-column", "orders", "more INT")
    assert shop("topics").lines == ["topic   offsets  partitions  kind", "orders        3           1  table, key id"]
    assert shop("describe", "orders").lines[0].startswith("orders: table, key id; on Kafka")


def test_an_append_that_is_run_again_goes_on(shop: Penstock) -> None:
    file = shop.file("rows.json", "".join(json.dumps({"id": n}) + "\n" for n in range(60)))
    words = ("append", "orders", "--from", file, "--producer", "till", "--batch-size", "2")
    assert shop(*words).err == '60 records appended to "orders"\n'
    shop.file("rows.json", file.read_text() + '{"id": 60}\n')
    assert shop(*words).err == '1 record appended to "orders"; 60 were there already\n'
    assert len(shop("read", "orders").lines) == 61


def test_what_the_embedded_log_alone_can_do_is_refused(shop: Penstock) -> None:
    shop.refused("kafka_lag", "lag")
    shop.refused("kafka_place", "read", "orders", "--place", "1")
    shop.refused("kafka_group", "tail", "orders", "--group", "g")
    shop.refused("kafka_retention", "create", "t", "--keep-for", "1 day")
    shop.refused("kafka_bound", "create", "t", "--bound", "9")
