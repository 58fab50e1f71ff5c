"""The interface is as /openapi.json describes it: requests that the description allows, and some that it does not, get
the answers that it describes, and never a failure of the server.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.config import SchemathesisConfig

from penstock.serve import Settings
from penstock.serve.settings import hashed
from tests.dashboard.scene import scene
from tests.effort import SOAK
from tests.serve.client import Client

EXAMPLES = 300 if SOAK else 12
LONGEST = 60_000
"""Addresses that are longer are refused before they come to us, in words that are not ours."""
NOT_SAID = ("positive_data_acceptance", "missing_required_header")
"""That a condition is valid SQL, or that a view exists, no description can say."""
ENDLESS = "/views/{view}/changes"
ASKED = (
    "/views/{view}/rows",
    "/views/{view}/row",
    "/topics/{topic}",
    "/topics/{topic}/records",
    "/queues/{queue}/letters",
    "/queues/{queue}/redrive",
    "/sinks/{view}/{sink}/letters",
    "/sinks/{view}/{sink}/redrive",
    "/batches",
)
"""Where there is something to get wrong."""
SINKS = ("/sinks", "/sinks/spend/webhook/letters")


def described(client: Client) -> Any:
    config = SchemathesisConfig.from_dict({"seed": 1})
    return schemathesis.openapi.from_url(f"{client.url}/openapi.json", config=config, headers=client.headers)


def test_every_route_is_described(client: Client) -> None:
    paths = client.get("/openapi.json").json["paths"]
    assert set(paths) == {
        "/views",
        "/views/{view}",
        "/views/{view}/rows",
        "/views/{view}/row",
        ENDLESS,
        "/topics",
        "/topics/{topic}",
        "/topics/{topic}/records",
        "/groups",
        "/queues",
        "/queues/{queue}/letters",
        "/queues/{queue}/redrive",
        "/sinks",
        "/sinks/{view}/{sink}/letters",
        "/sinks/{view}/{sink}/redrive",
        "/pipeline",
        "/batches",
        "/health",
        "/ready",
        "/metrics",
    }
    assert all("description" in each for path in paths.values() for each in path.values())


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_answers_are_as_described(tmp_path: Path, mode: GenerationMode) -> None:
    """Of a shop with batches, groups, queues, sinks and dead letters."""
    with scene(tmp_path / "shop") as shop, shop.served(Settings(port=0)):
        for route in ("/pipeline", "/batches", "/groups", "/queues", "/queues/parcels/letters", *SINKS):
            assert Client(shop.url).get(route).status == 200
        check_all(Client(shop.url), mode, but=(*NOT_SAID, "ignored_auth"))


def test_answers_are_as_described_to_who_has_a_token(tmp_path: Path) -> None:
    """And nobody else is answered, which is described too."""
    settings = Settings(port=0, tokens={hashed("t" * 20): frozenset({"read", "write"})})
    with scene(tmp_path / "shop") as shop, shop.served(settings):
        client = Client(shop.url, {"Authorization": f"Bearer {'t' * 20}"})
        assert client.get("/openapi.json").json["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
        check_all(client, GenerationMode.POSITIVE, but=NOT_SAID)


def check_all(client: Client, mode: GenerationMode, *, but: Sequence[str]) -> None:
    load_all_checks()
    checks = [CHECKS.get_one(each) for each in CHECKS.get_all_names() if each not in but]
    for found in described(client).get_all_operations():
        operation = found.ok()
        if operation.path in ASKED or (mode == GenerationMode.POSITIVE and operation.path != ENDLESS):
            _check(operation, mode, checks, client.headers)


def _check(operation: Any, mode: GenerationMode, checks: list[Any], headers: Mapping[str, str]) -> None:
    names = {"view": "spend", "topic": "orders", "queue": "parcels", "sink": "webhook"}

    @seed(1)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        assume(len(urlencode(case.query or {}, doseq=True, errors="replace")) < LONGEST)
        for at in names.keys() & (case.path_parameters or {}).keys() if mode == GenerationMode.POSITIVE else ():
            case.path_parameters[at] = names[at]
        case.call_and_validate(checks=checks, timeout=20, headers=dict(headers))

    check()
