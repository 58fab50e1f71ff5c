"""Receivers for tests: a server of HTTP that notes what is posted, answers as it is told, and checks signatures by the
reference library of Standard Webhooks.
"""

import json
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from standardwebhooks import Webhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
Answer = tuple[int, dict[str, str]]


@dataclass(frozen=True)
class Posted:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> dict[str, Any]:
        return dict(json.loads(self.body))

    def verified(self, secret: str) -> Any:
        return Webhook(secret).verify(self.body.decode(), self.headers)


@dataclass
class Receiver:
    """`answer` says what is answered; what it does not answer with 2xx is not among what was `taken`."""

    url: str
    answer: Callable[[Posted], Answer] = lambda _: (204, {})
    asked: list[Posted] = field(default_factory=list)
    taken: list[Posted] = field(default_factory=list)

    def add(self, posted: Posted) -> Answer:
        self.asked.append(posted)
        status, headers = self.answer(posted)
        if 200 <= status < 300:
            self.taken.append(posted)
        return status, headers

    @property
    def types(self) -> list[str]:
        return [each.event["type"] for each in self.taken]


@contextmanager
def receiving(port: int = 0, *, certificate: Path | None = None) -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(length := int(self.headers["content-length"]))
            if len(body) < length:  # who sent it has died meanwhile
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, told = receiver.add(Posted(self.path, headers, body))
            self.send_response(status)
            for name, value in told.items():
                self.send_header(name, value)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            if not isinstance(sys.exc_info()[1], ConnectionError):  # who asked has died meanwhile
                super().handle_error(request, client_address)

    server = Server(("127.0.0.1", port), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme, host = ("https", "localhost") if certificate else ("http", "127.0.0.1")
    receiver = Receiver(f"{scheme}://{host}:{server.server_port}/hook/S3cretPath?token=S3cretToken")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def made_certificate(folder: Path) -> Path:
    """A key and a certificate for localhost, in one file."""
    key, certificate, both = folder / "key.pem", folder / "certificate.pem", folder / "both.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += ["-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=localhost"]
    words += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(words, check=True, capture_output=True)
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    return both
