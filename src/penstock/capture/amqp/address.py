"""The address of a broker: `amqp://USER:PASSWORD@HOST:PORT/VHOST`, or `amqps://` for TLS.

The password is never shown.
"""

from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from penstock.errors import CaptureError

PORTS = {"amqp": 5672, "amqps": 5671}


@dataclass(frozen=True)
class Address:
    host: str
    port: int
    user: str = "guest"
    password: str = field(default="guest", repr=False)
    vhost: str = "/"
    secure: bool = False

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """As RabbitMQ's own clients read it: what is left out is guest:guest at localhost, the virtual host `/`."""
    try:
        found = urlsplit(text)
        scheme, port = found.scheme, found.port
    except ValueError:
        raise _unreadable() from None
    if scheme not in PORTS or found.query or found.fragment:
        raise _unreadable()
    return Address(
        found.hostname or "localhost",
        port or PORTS[scheme],
        unquote(found.username or "guest"),
        unquote(found.password or "guest"),
        unquote(found.path[1:]) or "/",
        secure=scheme == "amqps",
    )


def _unreadable() -> CaptureError:
    return CaptureError(
        "the address of RabbitMQ cannot be read",
        detail="It is not shown, because it may hold a password.",
        hint="Write amqp://USER:PASSWORD@HOST:PORT/VHOST; amqps:// for TLS. What is neither a letter nor a digit in "
        "them is written as %XX.",
    )
