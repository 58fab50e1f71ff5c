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
SIGNALS = ("TRACES", "METRICS")
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"
SPOKEN = "http/protobuf"
OFF = "tell nobody: OTEL_SDK_DISABLED=true"
LEAVE_SECONDS = 3.0
"""So long the end of a run waits for what is under way to a collector."""


def nobody(_written: Written) -> None:
    """Listens to nothing."""


@contextmanager
def heard(environment: Mapping[str, str], pipeline: str, lineage: int) -> Iterator[Hear]:
    """Inside, what is told of batches goes to collectors, if there are any."""
    signals = [each for each in SIGNALS if is_wanted(environment, each)]
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
    for signal in SIGNALS:
        name = f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL"
        name = name if name in environment else PROTOCOL
        asked = environment.get(name, SPOKEN)
        if asked != SPOKEN and is_wanted(environment, signal) and _is_installed():
            raise CommandError(
                f'OpenTelemetry is not spoken by "{asked}" here',
                detail=f"The variable {name} asks for it.",
                hint=f"Set it to {SPOKEN}, or {OFF}",
            )


def unheard(environment: Mapping[str, str]) -> CommandError | None:
    """What whoever runs a pipeline should know: that collectors are asked for, and get nothing."""
    asking = [name for each in SIGNALS if (name := _asking(environment, each)) is not None]
    if not asking or _is_installed():
        return None
    return CommandError(
        "nothing is sent to OpenTelemetry: what speaks it is not installed",
        detail=f"The variable {asking[0]} asks for it.",
        hint=f"Install it: pip install 'penstock[otel]', or {OFF}",
    )


def is_wanted(environment: Mapping[str, str], signal: str) -> bool:
    """Whether a signal is to be sent."""
    return _asking(environment, signal) is not None


def _asking(environment: Mapping[str, str], signal: str) -> str | None:
    """The variable that has a signal sent: the name of its exporter, OTLP, or an endpoint; None if it is not."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    exporter = f"OTEL_{signal}_EXPORTER"
    if named := environment.get(exporter):
        return exporter if "otlp" in named.split(",") else None
    endpoints = (ENDPOINT, f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    return next((name for name in endpoints if environment.get(name)), None)


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
