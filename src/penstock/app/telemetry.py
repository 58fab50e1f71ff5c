"""Telemetry: the batches of a run as spans and metrics of OpenTelemetry, sent by OTLP over HTTP.

Switched on by OpenTelemetry's own environment variables, where the extra `otel` is installed. No batch waits for it: it
hears of batches after they were written down, and what a collector does not take is lost.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from threading import Thread
from typing import TYPE_CHECKING, Any

from penstock.app.chronicle import Written
from penstock.errors import CommandError

if TYPE_CHECKING:
    from penstock.app.spans import Spans

Hear = Callable[[Written], None]
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"
SPOKEN = "http/protobuf"
LEAVE_SECONDS = 3.0
"""So long the end of a run waits for what is under way to a collector."""


def nobody(_written: Written) -> None:
    """Listens to nothing."""


@contextmanager
def heard(environment: Mapping[str, str], pipeline: str, lineage: int) -> Iterator[Hear]:
    """Inside, what is told of batches goes to collectors, if there are any."""
    signals = [each for each in ("TRACES", "METRICS") if is_wanted(environment, each)]
    if not signals or not _is_installed():
        yield nobody
        return
    from penstock.app.spans import Spans  # noqa: PLC0415 (an extra)

    spans = Spans(pipeline, lineage, signals)
    try:
        yield spans.add
    finally:
        _leave(spans)


def check_protocol(environment: Mapping[str, str]) -> None:
    """Refuses what would be sent to nobody, before anything is started."""
    for signal in ("TRACES", "METRICS"):
        name = f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL"
        name = name if name in environment else PROTOCOL
        asked = environment.get(name, SPOKEN)
        if asked != SPOKEN and is_wanted(environment, signal) and _is_installed():
            raise CommandError(
                f'OpenTelemetry is not spoken by "{asked}" here',
                detail=f"The variable {name} asks for it.",
                hint=f"Set it to {SPOKEN}, or tell nobody: OTEL_SDK_DISABLED=true",
            )


def is_wanted(environment: Mapping[str, str], signal: str) -> bool:
    """Whether a signal is to be sent: its exporter is OTLP, by name or because there is an endpoint."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    named = environment.get(f"OTEL_{signal}_EXPORTER", "")
    if named:
        return "otlp" in named.split(",")
    return bool(environment.get(ENDPOINT) or environment.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"))


def _is_installed() -> bool:
    try:
        needed = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
        return all(find_spec(name) is not None for name in needed)
    except ModuleNotFoundError:  # not even what they lie in
        return False


def _leave(spans: "Spans") -> None:
    """A collector that is away must not keep a run from leaving."""
    leaving: Any = Thread(target=spans.close, name="penstock-telemetry", daemon=True)
    leaving.start()
    leaving.join(LEAVE_SECONDS)
