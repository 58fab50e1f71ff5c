"""Views are served where the log is on Kafka as they are where it lies in a folder; somebody else runs the pipeline."""

from pathlib import Path

import pytest

from penstock.app.place import place_of
from penstock.app.serving import served_pipeline
from penstock.log.opening import opened_log
from penstock.model import load_pipeline
from penstock.serve import Settings
from penstock.views import SqliteStore, catch_up
from services.kafka import Cluster
from tests.log.kafka.conftest import kafka, prefix
from tests.serve.client import Client
from tests.serve.conftest import PIPELINE
from tests.views.shop import Shop, spend

__all__ = ["kafka", "prefix"]
ORDER = {"id": 1, "city": "Bern", "amount": "2.50", "at": "2024-01-31T12:00:00Z"}


@pytest.mark.kafka
def test_views_are_served_where_the_log_is_on_kafka(kafka: Cluster, prefix: str, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "pipeline.sql").write_text(f"SET log = 'kafka://{kafka.servers}/{prefix}';\n{PIPELINE}")
    place, pipeline = place_of(folder), load_pipeline(folder)
    with (
        opened_log(place.log(pipeline), place.opening(pipeline, admits=True)) as log,
        SqliteStore(place.store) as store,
    ):
        schema = "id BIGINT NOT NULL, city STRING, amount DECIMAL(10,2), at TIMESTAMP"
        log.create_topic("orders", schema, event_time="at")
        shop = Shop(log)  # type: ignore[arg-type]
        shop.announce()
        shop.batch(spend=[(None, spend("Bern", 1))])
        log.settle()
        catch_up(log, "shop", store)
        with served_pipeline(place, Settings(port=0)) as at:
            client = Client(at.url)
            assert client.rows("spend") == [{"city": "Bern", "orders": 1, "spend": "1.00"}]
            assert client.get("/views/spend/row", key="Bern").json["row"]["orders"] == 1
            with client.follow("spend") as following:
                assert [event.kind for event in following.take(1)] == ["start"]
                assert client.append("orders", ORDER).json["records"] == 1
                log.settle()
                assert client.get("/batches").json["lag"] == 1
                shop.until = log.mark().next_frame
                shop.batch(spend=[(spend("Bern", 1), spend("Bern", 2, "3.50"))])
                log.settle()
                catch_up(log, "shop", store)
                rows = [{"city": "Bern", "orders": n, "spend": s} for n, s in ((1, "1.00"), (2, "3.50"))]
                assert following.changes(2) == [(-1, rows[0]), (1, rows[1])]
            assert client.rows("spend", where="orders > 1") == rows[1:]
            ready = client.get("/ready").json
            assert (ready["status"], ready["lag"]) == ("ready", 0)
