"""A run that serves: what is appended over HTTP is in the answer, and the run's figures are among the metrics."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.app import place_of
from penstock.app.beginning import begin
from penstock.app.serving import served_pipeline
from penstock.serve import Settings
from tests.collector import collecting
from tests.serve.client import Client

MAIN = [sys.executable, "-c", "from penstock.cli import main; main()"]


def _check_shown(client: Client) -> None:
    """The plan, and the batches, once the last of them is written down."""
    plan = client.get("/pipeline").json
    assert (plan["name"], plan["lineage"], plan["running"]) == ("shop", 1, True)
    assert [node["title"] for node in plan["nodes"]] == [
        "orders",
        "customers",
        "table",
        "join",
        "aggregate",
        "spend_by_city",
    ]
    assert plan["nodes"][3]["warning"] == f"the state of {plan['nodes'][3]['id']} is unbounded: it grows with orders"
    assert plan["edges"][-1] == [plan["nodes"][4]["id"], "view:spend_by_city"]
    got: dict[str, Any] = {"batches": []}
    while not any(each["changes"] == {"spend_by_city": 1} for each in got["batches"]):
        got = client.get("/batches").json
    last = got["batches"][-1]
    measured = client.get("/metrics").data
    assert b"penstock_read_records_total 2.0" in measured and b"penstock_running 1.0" in measured
    assert b'penstock_batch_phase_seconds_total{phase="planning"}' in measured
    assert got["lag"] == 0
    assert sum(each["records"]["orders"] for each in got["batches"]) == 1
    assert set(last["phases"]) == {"planning", "computing", "appending", "committing", "storing"}
    assert 0 < sum(last["phases"].values()) - last["phases"]["storing"] <= last["seconds"] + 0.01


@pytest.mark.spark
def test_a_run_serves_what_it_keeps_right(tmp_path: Path) -> None:
    begin(tmp_path / "shop")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK")}
    command = [
        *MAIN,
        "run",
        str(tmp_path / "shop"),
        "--serve",
        "--bind",
        "127.0.0.1:0",
        "--max-rows",
        "50",
        "--log-format",
        "json",
    ]
    with (
        collecting() as collector,
        subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            text=True,
            env={**environment, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
        ) as process,
    ):
        try:
            assert process.stderr is not None
            said = [json.loads(process.stderr.readline()) for _ in range(2)]
            assert [line["event"] for line in said] == ["running", "serving"]
            client = Client(said[1]["url"])
            client.append("customers", {"id": 1, "city": "Rome"})
            position = client.append("orders", {"id": 1, "customer": 1, "amount": "12.50"}).json["position"]
            got = client.get("/views/spend_by_city/row", key="Rome", after=position)
            assert got.json["row"] == {"city": "Rome", "orders": 1, "spend": "12.50"}
            assert client.get("/ready").json["lag"] == 0
            assert client.get("/views/spend_by_city/rows", limit=51).primary == "at most 50 rows are given at once"
            progress = json.loads(process.stderr.readline())
            assert (progress["event"], progress["changes"]) == ("progress", {"spend_by_city": 1})
            with served_pipeline(place_of(tmp_path / "shop"), Settings(port=0)) as elsewhere:
                for each in (client, Client(elsewhere.url)):
                    _check_shown(each)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 130
            assert {"batch", "planning", "storing"} <= {span.name for span in collector.spans()}
            with served_pipeline(place_of(tmp_path / "shop"), Settings(port=0)) as left:
                assert Client(left.url).get("/pipeline").json["running"] is False
                assert Client(left.url).get("/batches", limit=1).json["lag"] == 0
        finally:
            process.kill()
