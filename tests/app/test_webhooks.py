"""Webhooks: a view's changes reach an address, signed, in order, at least once, whoever is away."""

import os
import re
import signal
import socket
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import groupby
from pathlib import Path
from random import Random
from threading import Thread

import pytest
from standardwebhooks import WebhookVerificationError

from penstock.errors import PenstockError
from penstock.log import Log
from penstock.model import Pipeline
from penstock.views.sinks import delivering, post
from tests.app.receivers import OTHER, SECRET, Answer, Posted, Receiver, made_certificate, receiving
from tests.app.sinking import LETTERS, VIEWS, check_silent, declared, sinking, soon, to
from tests.effort import SOAK
from tests.texts import refused
from tests.views.shop import Declared, Shop, Story, spend

KILLS = 60 if SOAK else 4


def test_changes_arrive_signed_and_in_order(log: Log, shop: Shop, receiver: Receiver, tmp_path: Path) -> None:
    with sinking(log, tmp_path, to(receiver)) as told:
        frame = shop.batch(spend=[(None, spend("Bern", 1, "2.50")), (None, spend("Zug", 1))])
        shop.batch(spend=[(spend("Bern", 1, "2.50"), spend("Bern", 2)), (spend("Zug", 1), None)])
    assert receiver.types == ["spend.inserted", "spend.inserted", "spend.updated", "spend.deleted"]
    first = receiver.taken[0].verified(SECRET)
    row = {"city": "Bern", "orders": 1, "spend": "2.50"}
    place = {"pipeline": "shop", "view": "spend", "lineage": 1, "frame": frame, "number": 0}
    assert first["data"] == {**place, "old": None, "new": row}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", first["timestamp"])
    assert receiver.taken[2].verified(SECRET)["data"]["old"] == row
    assert len({each.id for each in receiver.taken}) == 4 and "." not in receiver.taken[0].id
    assert told == []


def test_every_secret_signs_and_a_changed_file_counts_at_once(
    log: Log, shop: Shop, receiver: Receiver, tmp_path: Path
) -> None:
    with sinking(log, tmp_path, to(receiver)):
        shop.batch(spend=[(None, spend("Bern", 1))])
        assert soon(lambda: len(receiver.taken) == 1)
        (tmp_path / "secrets").write_text(f"# the new one\n{OTHER}\n\n{SECRET} # until May\n")
        shop.batch(spend=[(None, spend("Zug", 1))])
    before, after = receiver.taken
    with pytest.raises(WebhookVerificationError):
        before.verified(OTHER)
    assert after.verified(OTHER) == after.verified(SECRET)
    assert [each[:3] for each in after.headers["webhook-signature"].split(" ")] == ["v1,", "v1,"]


@pytest.mark.usefixtures("quick")
def test_a_receiver_that_fails_is_tried_again_and_order_is_kept(
    log: Log, shop: Shop, receiver: Receiver, tmp_path: Path
) -> None:
    chance, story = Random(3), Story(Shop(log, views=VIEWS | {"names": Declared("name STRING, age INT")}), seed=3)
    statuses = [200, 202, 204, 299, 301, 404, 429, 503]

    def answer(_: Posted) -> Answer:
        return chance.choice(statuses), {"retry-after": chance.choice(["0", "x", "Wed, 21 Oct 2015 07:28:00 GMT"])}

    receiver.answer = answer
    with sinking(log, tmp_path, to(receiver, ", webhook_attempts = 1000")) as told:
        story.go_on(20)
        assert soon(lambda: bool(receiver.taken) and receiver.taken[-1].event["data"]["frame"] >= last_frame(log))
        receiver.answer = lambda _: (200, {})
    places = [(each.event["data"]["frame"], each.event["data"]["number"]) for each in receiver.taken]
    assert places == sorted(set(places)) and len(receiver.asked) > len(receiver.taken)
    assert [each for each, _ in groupby(each.id for each in receiver.asked)] == [each.id for each in receiver.taken]
    assert {error.primary for error in told} == {
        f'the webhook of view "spend" does not reach {receiver.url.partition("/hook")[0]}'
    }
    check_silent(told)


def test_waits_grow_up_to_an_hour_and_never_all_at_once() -> None:
    waits = [[delivering.backoff(attempt, Random(seed)) for seed in range(50)] for attempt in range(1, 20)]
    for attempt, found in enumerate(waits):
        most = min(2.0**attempt, 3600.0)
        assert most / 2 <= min(found) < 0.7 * most and 0.8 * most < max(found) <= most
    assert max(waits[-1]) <= 3600.0 < 2.0**18


@pytest.mark.parametrize(
    ("said", "least", "most"),
    [("7", 7, 7), ("86400", 3600, 3600), ("-5", 0, 0), ("1.5", 0, 0), ("x", 0, 0), ("", 0, 0), ("a date", 50, 60)],
)
def test_a_receiver_may_say_for_how_long_to_wait(said: str, least: float, most: float) -> None:
    text = format_datetime(datetime.now(UTC) + timedelta(seconds=60)) if said == "a date" else said
    assert least <= post.wait_said(text) <= most


@pytest.mark.usefixtures("quick")
def test_a_receiver_that_wants_to_be_left_alone_is(log: Log, shop: Shop, receiver: Receiver, tmp_path: Path) -> None:
    times: list[float] = []

    def answer(_: Posted) -> Answer:
        times.append(time.monotonic())
        return (503, {"retry-after": "1"}) if len(times) == 1 else (200, {})

    receiver.answer = answer
    with sinking(log, tmp_path, to(receiver), to_the_end=False):
        shop.batch(spend=[(None, spend("Bern", 1))])
        assert soon(lambda: len(times) == 2)
    assert times[1] - times[0] >= 1.0


def test_an_answer_that_comes_in_drops_is_given_up(
    log: Log, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(post, "TIMEOUT_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=drip, args=(server,), daemon=True).start()
        away = Receiver(f"http://127.0.0.1:{server.getsockname()[1]}/")
        with sinking(log, tmp_path, to(away), to_the_end=False) as told:
            shop.batch(spend=[(None, spend("Bern", 1))])
            assert soon(lambda: bool(told))
    assert told[0].detail == "TimeoutError: no answer within 0.3 seconds."


def drip(server: socket.socket) -> None:
    """Answers each who comes, byte by byte, for as long as he listens."""
    with suppress(OSError):
        while True:
            line, _ = server.accept()
            with suppress(OSError), line:
                line.sendall(b"HTTP/1.1 200 OK\r\nx: ")
                while True:
                    line.sendall(b"x")
                    time.sleep(0.02)


def last_frame(log: Log) -> int:
    """The last frame in which the view has changed."""
    return max(entry.place.frame for entry in log.read("shop.1.spend"))


def test_a_receiver_that_was_away_gets_what_it_has_missed_from_the_next_run(
    log: Log, shop: Shop, tmp_path: Path
) -> None:
    with receiving() as away:
        pass
    pipeline = to(away)
    with sinking(log, tmp_path, pipeline, to_the_end=False) as told:
        shop.batch(spend=[(None, spend("Bern", 1))])
        assert soon(lambda: bool(told))
    with pytest.raises(PenstockError, match="does not reach") as error, sinking(log, tmp_path, pipeline):
        pass
    check_silent([*told, error.value])
    with receiving(int(away.url.split(":")[2].split("/")[0])) as back:
        with sinking(log, tmp_path, pipeline):
            pass
        assert back.types == ["spend.inserted"]
        with sinking(log, tmp_path, pipeline):
            pass
        assert len(back.asked) == 1


def test_what_is_delivered_twice_has_the_same_identity(
    log: Log, shop: Shop, receiver: Receiver, tmp_path: Path
) -> None:
    memory = tmp_path / ".penstock/sinks/spend.webhook.json"
    with sinking(log, tmp_path, to(receiver), to_the_end=False):
        before = memory.read_bytes()
    shop.batch(spend=[(None, spend("Bern", 1)), (None, spend("Zug", 1))])
    for _ in range(2):
        with sinking(log, tmp_path, to(receiver)):
            pass
        memory.write_bytes(before)  # as if the process had died before it could write it down
    first, again = receiver.taken[:2], receiver.taken[2:]
    assert [(each.id, each.body) for each in first] == [(each.id, each.body) for each in again]
    assert first[0].id != first[1].id


def test_attempts_are_counted_across_runs(log: Log, shop: Shop, receiver: Receiver, tmp_path: Path) -> None:
    receiver.answer = lambda _: (500, {})
    pipeline = to(receiver, ", webhook_attempts = 5")
    with sinking(log, tmp_path, pipeline, to_the_end=False):
        pass
    shop.batch(spend=[(None, spend("Bern", 1))])
    for asked in (1, 3):  # and once more at the end of each run
        with pytest.raises(PenstockError, match="does not reach"), sinking(log, tmp_path, pipeline):
            assert soon(lambda asked=asked: len(receiver.asked) == asked)  # type: ignore[misc]
    with sinking(log, tmp_path, pipeline):
        pass
    assert len(receiver.asked) == 5 and len(list(log.read(LETTERS))) == 1


def test_a_receiver_that_answers_gone_gets_nothing_more_until_the_address_is_another(
    log: Log, shop: Shop, receiver: Receiver, tmp_path: Path
) -> None:
    receiver.answer = lambda _: (410, {})
    with sinking(log, tmp_path, to(receiver)) as told:
        shop.batch(spend=[(None, spend("Bern", 1))])
        assert soon(lambda: bool(told))
        shop.batch(spend=[(None, spend("Zug", 1))])
    receiver.answer = lambda _: (200, {})
    with sinking(log, tmp_path, to(receiver)) as told:
        assert soon(lambda: bool(told))
    assert [error.primary.partition(":")[0] for error in told] == ['the webhook of view "spend" is off']
    check_silent(told)
    assert len(receiver.asked) == 1
    receiver.url = receiver.url.replace("S3cretPath", "S3cretPath2")
    with sinking(log, tmp_path, to(receiver)):
        pass
    assert receiver.types == ["spend.inserted"] * 2


def test_a_webhook_that_is_added_later_begins_with_what_comes(
    log: Log, shop: Shop, receiver: Receiver, tmp_path: Path
) -> None:
    shop.batch(spend=[(None, spend("Bern", 1))])
    with sinking(log, tmp_path, to(receiver)):
        shop.batch(spend=[(None, spend("Zug", 1))])
    assert [each.event["data"]["new"]["city"] for each in receiver.taken] == ["Zug"]


def test_after_a_reset_the_difference_is_told(log: Log, shop: Shop, receiver: Receiver, tmp_path: Path) -> None:
    with sinking(log, tmp_path, to(receiver)):
        shop.batch(spend=[(None, spend("Bern", 1)), (None, spend("Zug", 1))])
        second = Shop(log, lineage=2, views=VIEWS)
        second.batch(spend=[(None, spend("Bern", 1)), (None, spend("Zug", 7))])
        second.announce()
    assert receiver.types == ["spend.inserted"] * 2 + ["spend.updated"]
    assert receiver.taken[-1].event["data"] | {"frame": 0, "number": 0} == {
        "pipeline": "shop",
        "view": "spend",
        "lineage": 2,
        "frame": 0,
        "number": 0,
        "old": {"city": "Zug", "orders": 1, "spend": "1.00"},
        "new": {"city": "Zug", "orders": 7, "spend": "1.00"},
    }


def test_a_certificate_is_looked_at(log: Log, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = made_certificate(tmp_path)
    with receiving(certificate=certificate) as receiver:
        with sinking(log, tmp_path, to(receiver), to_the_end=False) as told:
            shop.batch(spend=[(None, spend("Bern", 1))])
            assert soon(lambda: bool(told))
        assert "self-signed certificate" in told[0].detail and not receiver.asked
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        with sinking(log, tmp_path, to(receiver)):
            pass
        assert receiver.types == ["spend.inserted"]


@pytest.mark.parametrize(
    ("text", "name"),
    [(None, "missing"), ("# none\n", "none"), (f"{SECRET}\nwhsec_dG9vc2hvcnQ=\n", "short"), ("hunter2", "plain")],
)
def test_secrets_that_are_none_are_told_of_and_not_shown(
    text: str | None, name: str, log: Log, shop: Shop, receiver: Receiver, tmp_path: Path
) -> None:
    (tmp_path / "secrets").unlink() if text is None else (tmp_path / "secrets").write_text(text)
    with refused(f"app/webhook-secrets-{name}", folder=tmp_path), sinking(log, tmp_path, to(receiver)):
        shop.batch(spend=[(None, spend("Bern", 1))])
    assert not receiver.asked


def test_a_memory_of_another_log_is_refused(log: Log, shop: Shop, receiver: Receiver, tmp_path: Path) -> None:
    with sinking(log, tmp_path, to(receiver)):
        pass
    memory = tmp_path / ".penstock/sinks/spend.webhook.json"
    with Log.open(tmp_path / "other") as other:
        hidden = {"folder": tmp_path, "this": other.identity, "that": log.identity}
        with refused("app/sink-of-another-log", **hidden), sinking(other, tmp_path, to(receiver)):
            pass
    memory.write_text('{"format": 2}')
    with sinking(log, tmp_path, to(receiver), to_the_end=False) as told:  # the run goes on
        assert soon(lambda: bool(told))
    assert [error.primary for error in told] == [f'"{memory}" cannot be read']


def test_what_was_compacted_before_it_went_out_is_said_to_be_lost(
    log: Log, shop: Shop, receiver: Receiver, tmp_path: Path
) -> None:
    shop.batch(spend=[(None, spend("Bern", 1))])
    with sinking(log, tmp_path, to(receiver)):
        pass
    shop.batch(spend=[(spend("Bern", 1), spend("Bern", 2))])
    shop.batch(spend=[(spend("Bern", 2), spend("Bern", 3))])
    log.compact([shop.topic("spend")])
    with refused("app/sink-compacted", folder=tmp_path), sinking(log, tmp_path, to(receiver)):
        pass
    (tmp_path / ".penstock/sinks/spend.webhook.json").unlink()
    with sinking(log, tmp_path, to(receiver)):
        shop.batch(spend=[(spend("Bern", 3), spend("Bern", 4))])
    assert [each.event["data"]["new"]["orders"] for each in receiver.taken] == [4]


def test_without_the_client_of_kafka_a_topic_is_refused(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.app.sinks.find_spec", lambda _: None)
    pipeline = declared("kafka = 'kafka://127.0.0.1:9092/spend'")
    with refused("app/no-confluent-kafka"), sinking(log, tmp_path, pipeline):
        pass


def follow_and_be_killed(folder: Path, pipeline: Pipeline, seconds: float) -> None:
    child = os.fork()
    if child == 0:
        try:
            with Log.open(folder / "log", create=False) as log, sinking(log, folder, pipeline):
                time.sleep(60)
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_killed_again_and_again_nothing_is_missing_and_repeats_are_known(
    log: Log, shop: Shop, receiver: Receiver, tmp_path: Path
) -> None:
    chance, pipeline, story = Random(11), to(receiver), Story(both := Shop(log), seed=11)
    both.announce()
    with sinking(log, tmp_path, pipeline):
        pass
    for _ in range(KILLS):
        story.go_on(chance.randrange(20, 60))
        follow_and_be_killed(tmp_path, pipeline, chance.uniform(0.05, 0.4))
    with sinking(log, tmp_path, pipeline):
        pass
    seen: dict[str, bytes] = {}
    for each in receiver.taken:
        assert seen.setdefault(each.id, each.body) == each.body
    assert len(seen) == len(list(log.read("shop.1.spend")))
    events = {each.id: each.event["data"] for each in receiver.taken}  # in the order in which they first came
    places = [(event["frame"], event["number"]) for event in events.values()]
    assert places == sorted(places)
