"""A collector of OpenTelemetry: takes what comes by OTLP over HTTP, on loopback."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from zlib import MAX_WBITS, decompress

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taking)
        self.traces: list[Any] = []
        self.metrics: list[Any] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def spans(self) -> list[Any]:
        return [span for each in self.traces for scope in each.scope_spans for span in scope.spans]

    def figures(self) -> dict[str, Any]:
        """The newest of every metric, by name."""
        return {
            figure.name: figure for each in self.metrics for scope in each.scope_metrics for figure in scope.metrics
        }


class _Taking(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            data = decompress(data, MAX_WBITS | 16)
        if self.path == "/v1/traces":
            self.server.traces += ExportTraceServiceRequest.FromString(data).resource_spans
        else:
            self.server.metrics += ExportMetricsServiceRequest.FromString(data).resource_metrics
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@contextmanager
def collecting() -> Iterator[Collector]:
    with Collector() as collector:
        thread = Thread(target=collector.serve_forever, daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            collector.shutdown()
            thread.join()
