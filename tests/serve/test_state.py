"""Health, readiness and metrics."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from time import monotonic, sleep

import pytest

from penstock.log import Log
from penstock.log import Place as LogPlace
from penstock.log.disk import Disk
from penstock.serve import Settings
from penstock.serve.diary import Diary
from penstock.serve.elsewhere import Elsewhere, Stand
from penstock.serve.server import serving
from penstock.views import Position
from penstock.views.sinks.delivering import LETTERS
from penstock.views.sinks.memory import Memory
from tests.serve.client import Client
from tests.serve.conftest import Place
from tests.views.shop import Shop, spend


def metrics(client: Client) -> dict[str, float]:
    got = client.get("/metrics")
    assert got.headers["content-type"].startswith("text/plain")
    lines = [line.rpartition(" ") for line in got.data.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def soon(holds: Callable[[], bool]) -> bool:
    until = monotonic() + 20
    while not holds() and monotonic() < until:
        sleep(0.01)
    return holds()


def test_ready_is_who_has_answers(place: Place) -> None:
    with serving(place.served, Settings(port=0)) as at:
        client = Client(at.url)
        assert client.get("/health").json == {"status": "ok"}
        got = client.get("/ready")
        assert (got.status, got.primary) == (503, "there are no answers yet")
        assert client.get("/views/spend/row", key="Bern").status == 503
        frame = place.batch(spend=[(None, spend("Bern", 1))])
        assert client.get("/ready").json["position"]["frame"] == frame
        assert client.get("/views/spend/row", key="Bern").status == 200


def test_what_log_and_store_know_is_measured(place: Place, client: Client) -> None:
    place.batch(spend=[(None, spend("Bern", 1))])
    client.append("orders", {"id": 1, "at": "2024-01-31T12:00:00Z"})
    client.get("/views/spend/rows")
    found = metrics(client)
    assert (found["penstock_lag_frames"], found["penstock_view_batch"], found["penstock_lineage"]) == (1, 0, 1)
    assert found["penstock_log_frames"] == place.log.mark().next_frame
    assert found['penstock_http_requests_total{route="/views/{view}/rows",status="200"}'] == 1
    assert found["penstock_followers"] == 0
    place.batch(spend=[(None, spend("Zug", 1))])
    found = metrics(client)
    assert found["penstock_lag_frames"] == 0
    assert found['penstock_watermark_delay_seconds{stream="orders"}'] > 1e6


def test_a_store_of_another_log_is_not_ready(place: Place, tmp_path: Path) -> None:
    place.batch(spend=[(None, spend("Bern", 1))])
    with Log.open(tmp_path / "other") as other:
        other.create_topic("orders", "id BIGINT")
        Shop(other).announce()
        served = replace(place.served, log=other)
        with serving(served, Settings(port=0)) as at:
            got = Client(at.url).get("/ready")
    assert (got.status, got.primary) == (503, "the store is not one of this log")
    assert place.log.identity in got.json["error"]["detail"]


def test_a_store_on_a_server_is_measured_and_so_is_that_it_is_away(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.serve.elsewhere.AGAIN_SECONDS", 0.0)
    place.batch(spend=[(None, spend("Bern", 1))])
    answers: list[Position | None] = [place.served.position()]
    served = replace(place.served, elsewhere=Elsewhere(lambda: answers[0]))
    with serving(served, Settings(port=0)) as at:
        client = Client(at.url)
        client.append("orders", {"id": 1, "at": "2024-01-31T12:00:00Z"})
        place.batch(spend=[(None, spend("Zug", 1))])
        assert client.get("/ready").json["store"] == {"reachable": True, "lag": 1}
        found = metrics(client)
        assert (found["penstock_lag_frames"], found["penstock_store_lag_frames"], found["penstock_store_up"]) == (
            0,
            1,
            1,
        )
        answers.clear()
        away = {"reachable": False, "lag": None}
        assert soon(lambda: client.get("/ready").json["store"] == away)  # until then it is what was known before
        assert metrics(client)["penstock_store_up"] == 0


class Silent:
    """A store that says nothing while it is silent."""

    def __init__(self) -> None:
        self.speaks = Event()
        self.asked = 0

    def __call__(self) -> Position | None:
        self.asked += 1
        if not self.speaks.wait(60):
            raise TimeoutError
        return None


def test_a_store_that_says_nothing_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.serve.elsewhere.AGAIN_SECONDS", 0.0)
    monkeypatch.setattr("penstock.serve.elsewhere.PATIENCE_SECONDS", 0.5)
    silent = Silent()
    elsewhere, began = Elsewhere(silent), monotonic()
    assert [elsewhere.stand() for _ in range(10)] == [Stand(reachable=False)] * 10
    assert 0.5 <= monotonic() - began < 2.5 and silent.asked == 1
    silent.speaks.set()
    assert soon(lambda: elsewhere.stand().reachable)
    silent.speaks.clear()
    began = monotonic()
    assert [elsewhere.stand() for _ in range(10)] == [Stand(reachable=True)] * 10
    assert monotonic() - began < 2.5
    silent.speaks.set()


def test_what_was_known_of_a_store_long_ago_is_asked_again_first(monkeypatch: pytest.MonkeyPatch) -> None:
    now, answers = [0.0], [Position("log", 1, frame, 0, 0) for frame in (7, 9)]
    monkeypatch.setattr("penstock.serve.elsewhere.monotonic", lambda: now[0])
    elsewhere = Elsewhere(answers.pop)
    assert elsewhere.stand() == Stand(True, Position("log", 1, 9, 0, 0))
    now[0] = 60.0  # who asks once a minute is told how it stands now
    assert elsewhere.stand() == Stand(True, Position("log", 1, 7, 0, 0))
    now[0] = 120.0
    assert elsewhere.stand() == Stand(reachable=False)


def test_sinks_are_measured(place: Place) -> None:
    first = place.batch(spend=[(None, spend("Bern", 1))])
    memory = Memory(place.log, place.folder / "sinks/spend.webhook.json", Disk())
    memory.delivered(LogPlace(first))
    memory.failed()
    place.log.create_topic("shop.spend.webhook.dead-letters", LETTERS, own=True)
    place.log.append("shop.spend.webhook.dead-letters", [{"id": "x"}])
    place.batch(spend=[(None, spend("Zug", 1))])
    with serving(replace(place.served, sinks=place.folder / "sinks"), Settings(port=0)) as at:
        found = metrics(Client(at.url))
    labels = '{sink="webhook",view="spend"}'
    names = ("lag_frames", "failed_attempts", "dead_letters")
    assert [found[f"penstock_sink_{name}{labels}"] for name in names] == [2, 1, 1]


def test_what_a_run_has_written_down_is_measured(place: Place, client: Client) -> None:
    now = datetime.now(UTC)
    for _ in range(2):
        place.log.raise_epoch("pipeline shop")
    folder = place.folder / ".penstock/lineages/1"
    state = folder / "checkpoint/state/0"
    state.mkdir(parents=True)
    (state / "1.delta").write_bytes(b"x" * 100)
    diary = Diary(folder)
    diary.describe({"lineage": 1})
    diary.sum_up(
        {
            "started_at": now.isoformat(),
            "batches": 4,
            "seconds": 1.5,
            "frames": 10,
            "letters": 2,
            "phases": {"computing": 1.25},
            "records": {"orders": 140, "others": 3},
            "changes": {"spend": 8},
            "late": {"spend": 4},
            "watermarks": {"orders": (now - timedelta(minutes=1)).isoformat()},
            "open": {"w": 6},
            "state": {"1": 77},
        }
    )
    found = metrics(client)
    assert found["penstock_batches_total"] == 4
    assert found["penstock_read_records_total"] == 143
    assert found['penstock_source_records_total{source="orders"}'] == 140
    assert found["penstock_batch_seconds_total"] == 1.5
    assert found['penstock_batch_phase_seconds_total{phase="computing"}'] == 1.25
    assert found["penstock_dead_letters_total"] == 2
    assert found['penstock_changes_total{view="spend"}'] == 8
    assert found['penstock_late_rows_total{view="spend"}'] == 4
    assert found['penstock_open_windows{view="w"}'] == 6
    assert found['penstock_state_level_bytes{level="1"}'] == 77
    assert found["penstock_run_start_time_seconds"] == now.timestamp()
    assert 59 < found['penstock_watermark_delay_seconds{stream="orders"}'] < 70
    assert (found["penstock_restarts"], found["penstock_state_bytes"], found["penstock_running"]) == (1, 100, 0)
