"""OpenTelemetry: what collectors are told of batches, and when nobody is told anything."""

import json
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from penstock.app.chronicle import Written
from penstock.app.telemetry import check_protocol, heard, is_wanted, nobody
from penstock.cli import main
from tests.collector import collecting
from tests.texts import assert_golden, refused

LINE: dict[str, Any] = {
    "batch": 7,
    "frame": 31,
    "seconds": 1.0,
    "phases": {"planning": 0.25, "computing": 0.5, "appending": 0.125, "committing": 0.0625, "storing": 2.0},
    "records": {"orders": 120, "customers": 3},
    "changes": {"spend": 4},
    "late": {"spend": 2},
    "letters": 1,
    "watermarks": {"orders": "2024-01-31T12:00:00+00:00"},
    "state_bytes": 4096,
}
SHIFT = 1_700_000_000


def test_a_batch_is_a_span_with_its_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
        with heard({"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}, "shop", 3) as hear:
            hear(Written(LINE, SHIFT + 10.0))
    spans = {span.name: span for span in collector.spans()}
    assert set(spans) == {"batch", *LINE["phases"]}
    assert {span.parent_span_id for name, span in spans.items() if name != "batch"} == {spans["batch"].span_id}
    times = {
        name: ((span.start_time_unix_nano / 1e9) - SHIFT, (span.end_time_unix_nano / 1e9) - SHIFT)
        for name, span in spans.items()
    }
    want = {
        "batch": (9.125, 10.125),
        "planning": (9.125, 9.375),
        "computing": (9.375, 9.875),
        "appending": (9.875, 10.0),
        "committing": (10.0625, 10.125),
        "storing": (10.0, 12.0),
    }
    assert {name: pytest.approx(time, abs=1e-5) for name, time in times.items()} == want
    said = {each.key: each.value.int_value for each in spans["batch"].attributes}
    assert (said["penstock.batch"], said["penstock.frame"], said["penstock.records"]) == (7, 31, 123)
    resource = {each.key: each.value for each in collector.traces[0].resource.attributes}
    assert resource["service.name"].string_value == "penstock"
    assert resource["penstock.pipeline"].string_value == "shop"
    assert resource["deployment.environment"].string_value == "test"


def test_batches_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", f"{collector.url}/v1/metrics")
        with heard({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": collector.url}, "shop", 3) as hear:
            for _ in range(3):
                hear(Written(LINE, SHIFT))
    found = collector.figures()
    assert collector.spans() == []
    assert found["penstock.batch.duration"].histogram.data_points[0].count == 3
    records = {each.attributes[0].value.string_value: each.as_int for each in found["penstock.records"].sum.data_points}
    assert records == {"orders": 360, "customers": 9}
    assert found["penstock.changes"].sum.data_points[0].as_int == 12
    assert found["penstock.late_rows"].sum.data_points[0].as_int == 6
    assert found["penstock.dead_letters"].sum.data_points[0].as_int == 3
    assert len(found["penstock.batch.phase.duration"].histogram.data_points) == 5
    assert found["penstock.watermark.delay"].gauge.data_points[0].as_double > 1e6
    assert found["penstock.state.size"].gauge.data_points[0].as_int == 4096


def test_the_environment_says_what_is_sent() -> None:
    there = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
    assert not is_wanted({}, "TRACES")
    assert is_wanted(there, "TRACES") and is_wanted(there, "METRICS")
    assert is_wanted({"OTEL_TRACES_EXPORTER": "otlp"}, "TRACES")
    assert not is_wanted({**there, "OTEL_METRICS_EXPORTER": "none"}, "METRICS")
    assert not is_wanted({**there, "OTEL_SDK_DISABLED": "true"}, "TRACES")
    with heard({}, "shop", 1) as hear:
        assert hear is nobody
    check_protocol({**there, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"})
    check_protocol({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
    with refused("app/telemetry_protocol"):
        check_protocol({**there, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})


def test_a_collector_that_is_away_keeps_nobody_from_leaving(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    begun = monotonic()
    with heard({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_METRICS_EXPORTER": "otlp"}, "shop", 1) as hear:
        hear(Written(LINE, SHIFT))
    assert monotonic() - begun < 10


def test_who_asks_for_it_where_it_is_not_installed_is_warned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pipeline.sql").write_text("CREATE STREAM s (a INT); CREATE VIEW v AS SELECT a FROM s;")
    monkeypatch.setattr("penstock.app.telemetry.find_spec", lambda _: None)

    def told(*form: str) -> str:
        with pytest.raises(SystemExit) as ended:  # no master is there, which is known before Java is started
            main(["run", str(tmp_path), "--master", "spark://127.0.0.1:9", *form])
        assert ended.value.code == 1
        return capsys.readouterr().err

    assert "OpenTelemetry" not in told()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    assert_golden("app/telemetry_missing", "\n".join(told().splitlines()[:3]))
    warning, failed = map(json.loads, told("--log-format", "json").splitlines())
    assert (warning["level"], warning["event"], failed["event"]) == ("warning", "warning", "failed")
    assert warning["primary"].startswith("nothing is sent to OpenTelemetry")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert "OpenTelemetry" not in told()
