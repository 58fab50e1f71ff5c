"""Dead letters of webhooks: what was given up is kept with the reason, once, and can be sent again."""

import shutil
from pathlib import Path

import pytest

from penstock.app.place import place_of
from penstock.app.sinks import redriven
from penstock.cli import main
from penstock.errors import PenstockError
from penstock.log import Log
from penstock.views.sinks import delivering
from tests.app.receivers import SECRET, Receiver
from tests.app.sinking import LETTERS, SQL, VIEWS, check_silent, sinking, soon, to
from tests.views.shop import Shop, spend


@pytest.mark.usefixtures("quick")
def test_after_the_last_attempt_it_is_a_dead_letter_once_and_the_next_is_tried(
    log: Log, shop: Shop, receiver: Receiver, tmp_path: Path
) -> None:
    receiver.answer = lambda posted: (500 if posted.event["data"]["number"] == 0 else 200, {})
    memory = tmp_path / ".penstock/sinks/spend.webhook.json"
    with sinking(log, tmp_path, to(receiver, ", webhook_attempts = 3"), to_the_end=False):
        before = memory.read_bytes()
    frame = shop.batch(spend=[(None, spend("Bern", 1)), (None, spend("Zug", 1))])
    for _ in range(2):
        with sinking(log, tmp_path, to(receiver, ", webhook_attempts = 3"), to_the_end=False) as told:
            assert soon(lambda: receiver.types[-1:] == ["spend.inserted"] and b'"index": 2' in memory.read_bytes())
        memory.write_bytes(before)
    letters = [entry.value for entry in log.read(LETTERS)]
    assert len(letters) == 1 and isinstance(letters[0], dict)
    assert letters[0] | {"body": ""} == {
        "id": receiver.asked[0].id,
        "lineage": 1,
        "frame": frame,
        "number": 0,
        "attempts": 3,
        "reason": "It answered 500 Internal Server Error",
        "body": "",
    }
    assert letters[0]["body"].encode() == receiver.asked[0].body
    assert [error.hint for error in told if "gives up" in error.primary] == [
        f"It is a dead letter now: penstock log read {LETTERS}; penstock redrive spend sends it."
    ]


@pytest.mark.usefixtures("quick")
def test_dead_letters_are_sent_again_once_and_what_is_refused_waits(
    log: Log, shop: Shop, receiver: Receiver, tmp_path: Path
) -> None:
    receiver.answer = lambda _: (500, {})
    pipeline, place = to(receiver, ", webhook_attempts = 1"), place_of(tmp_path)
    with sinking(log, tmp_path, pipeline):
        shop.batch(spend=[(None, spend("Bern", 1)), (None, spend("Zug", 1)), (None, spend("Genf", 1))])
    assert len(list(log.read(LETTERS))) == 3
    receiver.answer = lambda posted: (500 if posted.event["data"]["new"]["city"] == "Genf" else 200, {})
    assert redriven(place, pipeline, log, "spend", stop=lambda: bool(receiver.taken)) == {"webhook": 1}
    with pytest.raises(PenstockError, match="does not reach") as error:
        redriven(place, pipeline, log, "spend")
    assert error.value.detail == "It answered 500 Internal Server Error. Before it, 1 of the dead letters were taken."
    receiver.answer = lambda _: (200, {})
    assert [redriven(place, pipeline, log, "spend") for _ in range(2)] == [{"webhook": 1}, {"webhook": 0}]
    assert [each.id for each in receiver.taken] == [each.id for each in receiver.asked[:3]]
    assert receiver.taken[0].verified(SECRET)["data"]["new"]["city"] == "Bern"
    check_silent([error.value])


@pytest.mark.usefixtures("quick")
def test_dead_letters_are_sent_again_from_a_folder_that_has_never_sent_any(
    log: Log, shop: Shop, receiver: Receiver, tmp_path: Path
) -> None:
    receiver.answer = lambda _: (500, {})
    pipeline = to(receiver, ", webhook_attempts = 1")
    with sinking(log, tmp_path, pipeline):
        shop.batch(spend=[(None, spend("Bern", 1))])
    receiver.answer = lambda _: (200, {})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(tmp_path / "secrets", elsewhere)
    assert [redriven(place_of(elsewhere), pipeline, log, "spend") for _ in range(2)] == [{"webhook": 1}, {"webhook": 0}]


def test_dead_letters_belong_to_one_pipeline_also_where_names_have_dots() -> None:
    assert delivering.is_dead_topic("shop", LETTERS) and delivering.is_dead_topic(
        "shop.eu", "shop.eu.spend.email.dead-letters"
    )
    assert not delivering.is_dead_topic("shop", "shop.eu.spend.email.dead-letters")


def test_the_command_says_how_many_were_sent_again(
    receiver: Receiver, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "shop"
    (folder / ".penstock").mkdir(parents=True)
    (folder / "secrets").write_text(f"{SECRET}\n")
    options = f"webhook = '{receiver.url}', webhook_secrets = 'secrets', webhook_attempts = 1"
    (folder / "pipeline.sql").write_text(SQL.format(settings="", options=options))
    receiver.answer = lambda _: (500, {})
    with Log.open(folder / ".penstock/log") as log, sinking(log, folder, to(receiver, ", webhook_attempts = 1")):
        shop = Shop(log, views=VIEWS)
        shop.announce()
        shop.batch(spend=[(None, spend("Bern", 1))])
    receiver.answer = lambda _: (200, {})
    with pytest.raises(SystemExit, match="0"):
        main(["redrive", "spend", "--pipeline", str(folder)])
    assert capsys.readouterr().err == "webhook: 1 dead letter was sent again\n"
    assert receiver.types == ["spend.inserted"]
