"""The guide to sinks does what it says."""

import re
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from penstock.log import Log
from penstock.model import pipeline_of
from penstock.model.sinks import KafkaTopic, Smtp, Webhook
from tests.app.receivers import SECRET, receiving
from tests.app.sinking import declared, sinking
from tests.views.shop import Declared, Shop

PAGE = (Path(__file__).parents[2] / "docs/guide-sinks.md").read_text()
BLOCKS = dict(re.findall(r"^```(sql|python)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
VIEWS = {"spend": Declared("card STRING, payments BIGINT, amount DECIMAL(12,2)", key=("card",))}


def test_the_pipeline_of_the_guide_has_three_sinks() -> None:
    pipeline = pipeline_of(BLOCKS["sql"])
    smtp = Smtp("mail.example.org", 587, starttls="always", user="alerts", sender="alerts@example.org")
    assert pipeline.options.smtp == smtp
    assert pipeline.view("spend").options.webhook == Webhook("https://example.org/hooks/spend")
    assert pipeline.view("suspicious").options.email == ("ann@example.org", "bob@example.org")
    assert pipeline.view("suspicious").options.email_every == timedelta(minutes=5)
    assert pipeline.view("for_others").options.kafka == KafkaTopic("127.0.0.1:9092", "spend-by-card")


def paid(payments: int, amount: str) -> dict[str, Any]:
    return {"card": "a", "payments": payments, "amount": Decimal(amount)}


def test_the_receiver_of_the_guide_takes_the_message_of_the_guide(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(BLOCKS["python"], names)
    seen: dict[str, Any] = {}
    (tmp_path / "secrets").write_text(SECRET)
    with Log.open(tmp_path / "log") as log, receiving() as receiver:
        shop = Shop(log, views=VIEWS)
        shop.announce()
        receiver.answer = lambda each: (names["receive"](each.body, each.headers, SECRET, seen), {})
        pipeline = declared(f"webhook = '{receiver.url}', webhook_secrets = 'secrets'")
        with sinking(log, tmp_path, pipeline):
            first, second = paid(1, "5.00"), paid(2, "7.50")
            shop.batch(spend=[(None, first)])
            shop.batch(spend=[(first, second)])
        _, found = seen.values()
        told = re.search(r'"old":(\{.*?\}),"new":(\{.*?\})\}\}', PAGE)
        assert told is not None and receiver.taken[1].body.decode().endswith(f'"old":{told[1]},"new":{told[2]}}}}}')
        assert found["type"] == "spend.updated"
        assert (
            names["receive"](receiver.taken[1].body, receiver.taken[1].headers | {"webhook-id": "x"}, SECRET, {}) == 400
        )
