"""A link: one connection to RabbitMQ with one channel, as the bridges use it.

What cannot be mended by waiting (a wrong password, a queue that is not there) is a `CaptureError`; everything else that
ends the link is `Gone`, and whoever uses it makes another one.
"""

import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import amqp

from penstock.capture.amqp.address import Address
from penstock.capture.amqp.tally import Say
from penstock.errors import CaptureError

CONNECT_SECONDS = 10
HEARTBEAT_SECONDS = 20
SILENCE_SECONDS = 60
"""An answer that does not come for so long does not come."""
BEAT_SECONDS = 1.0
Take = Callable[[amqp.Message], None]


class Gone(Exception):
    """The link is lost, or was never there: why."""


@dataclass(frozen=True)
class Parcel:
    """A message on its way to an exchange."""

    message: amqp.Message
    exchange: str
    routing_key: str


@dataclass
class Sent:
    """What became of parcels, by their place among those that were sent."""

    taken: set[int]
    refused: set[int]
    returned: dict[int, str]
    """Those for which there was no queue, with what RabbitMQ says; they are taken as well."""


class Link:
    """Use it in a `with`."""

    def __init__(self, address: Address, say: Say) -> None:
        self._address = address
        self._beaten_at = time.monotonic()
        self._sent = Sent(set(), set(), {})
        self._places: dict[str, int] = {}
        self._first = self._open = self._next = 1
        """Tags: of the first parcel that was sent last, of the first of them that is not settled, of the next one."""
        self._connection = amqp.Connection(
            f"{address.host}:{address.port}",
            userid=address.user,
            password=address.password,
            login_method="PLAIN",
            virtual_host=address.vhost,
            ssl={"context": {"check_hostname": True}, "server_hostname": address.host} if address.secure else False,
            connect_timeout=CONNECT_SECONDS,
            read_timeout=SILENCE_SECONDS,
            write_timeout=SILENCE_SECONDS,
            heartbeat=HEARTBEAT_SECONDS,
            client_properties={"product": "penstock"},
            on_blocked=lambda why: say(f"RabbitMQ at {address} takes no messages for now: {why}"),
            on_unblocked=lambda: say(f"RabbitMQ at {address} takes messages again"),
        )
        with self._told():
            try:
                self._connection.connect()
            except (amqp.AccessRefused, amqp.NotAllowed) as error:
                raise _not_let_in(address, error) from error
            self._channel = self._connection.channel()
            self._channel.auto_decode = False  # bodies are bytes

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """In order only if all is well: an answer could be waited for in vain."""
        with suppress(OSError, amqp.AMQPError):
            if kind is None:
                self._connection.close()
        with suppress(OSError, amqp.AMQPError):
            self._connection.collect()

    # Coming in

    def waiting(self, queue: str) -> int:
        """How many messages wait in the queue."""
        with self._told(f'queue "{queue}"'):
            return int(self._channel.queue_declare(queue, passive=True).message_count)

    def consume(self, queue: str, prefetch: int, take: Take) -> None:
        """From now on `take` gets the messages of the queue, in `pump`; nobody else gets any."""
        with self._told(f'queue "{queue}"'):
            self._channel.basic_qos(0, prefetch, False)
            try:
                self._channel.basic_consume(queue, callback=lambda found: take(_in_text(found)), exclusive=True)
            except amqp.AccessRefused as error:
                if "exclusive" in str(error):
                    raise Gone(f'another consumer has queue "{queue}"') from error
                raise

    def acknowledge(self, tag: int) -> None:
        """All messages up to this one."""
        with self._told():
            self._channel.basic_ack(tag, multiple=True)

    def pump(self, seconds: float) -> bool:
        """Takes in one thing that has come; False if nothing comes for so long."""
        with self._told():
            self._beat()
            try:
                self._connection.drain_events(timeout=seconds)
            except TimeoutError:
                return False
            return True

    def _beat(self) -> None:
        if time.monotonic() - self._beaten_at >= BEAT_SECONDS:
            self._beaten_at = time.monotonic()
            self._connection.heartbeat_tick()

    # Going out

    def confirm(self, exchange: str) -> None:
        """From now on RabbitMQ says what became of each parcel. The exchange has to be there."""
        with self._told(f'exchange "{exchange}"'):
            if exchange:
                self._channel.exchange_declare(exchange, "", passive=True)
            self._channel.confirm_select()
        for event, take in (
            ("basic_ack", self._taken),
            ("basic_nack", self._refused),
            ("basic_return", self._returned),
        ):
            self._channel.events[event].add(take)

    def send(self, parcels: Sequence[Parcel]) -> Sent:
        """Sends the parcels; what becomes of them is told there, while `pump` is called."""
        sent = self._sent = Sent(set(), set(), {})
        self._places = {parcel.message.properties["message_id"]: at for at, parcel in enumerate(parcels)}
        self._first = self._open = self._next
        with self._told():
            for parcel in parcels:
                self._next += 1
                self._channel.basic_publish(parcel.message, parcel.exchange, parcel.routing_key, mandatory=True)
                self._beat()
        return sent

    def _taken(self, tag: int, multiple: bool) -> None:  # noqa: FBT001 (called by the client)
        self._sent.taken.update(self._settled(tag, multiple=multiple))

    def _refused(self, tag: int, multiple: bool) -> None:  # noqa: FBT001 (called by the client)
        self._sent.refused.update(self._settled(tag, multiple=multiple))

    def _settled(self, tag: int, *, multiple: bool) -> list[int]:
        """Places of parcels of which nothing was known before."""
        tags = range(self._open, tag + 1) if multiple else (tag,)
        if multiple:
            self._open = tag + 1
        places = [at - self._first for at in tags]
        return [place for place in places if place not in self._sent.taken and place not in self._sent.refused]

    def _returned(self, error: Exception, _exchange: str, _routing_key: str, message: amqp.Message) -> None:
        self._sent.returned[self._places[message.properties["message_id"]]] = _said(error)

    @contextmanager
    def _told(self, what: str = "") -> Iterator[None]:
        """The client's errors as ours."""
        try:
            yield
        except amqp.NotFound as error:
            raise CaptureError(
                f"RabbitMQ at {self._address} has no {what or 'such thing'}",
                detail=_said(error) + ".",
                hint="A bridge makes no queues and no exchanges: declare it, or check the name and the virtual host.",
            ) from error
        except amqp.AccessRefused as error:
            raise CaptureError(
                f'RabbitMQ at {self._address} does not let "{self._address.user}" use {what or "this"}',
                detail=_said(error) + ".",
            ) from error
        except (OSError, amqp.AMQPError) as error:
            raise Gone(_said(error)) from error
        except (ValueError, ArithmeticError, struct.error) as error:  # it would come again with every link
            is_text = isinstance(error, UnicodeDecodeError)
            raise CaptureError(
                f"a message from RabbitMQ at {self._address} cannot be read",
                detail="One of its properties, or its routing key, is not UTF-8."
                if is_text
                else f"One of its properties or headers has a value that cannot be: {error}.",
                hint="It is the first one in its queue: take it out there.",
            ) from error


def _in_text(message: amqp.Message) -> amqp.Message:
    """The client lets halves of characters through, which are no text: they are written out."""
    headers = message.properties.get("application_headers")
    message.properties = {name: _whole(value) for name, value in message.properties.items()}
    if headers:
        message.properties["application_headers"] = {_whole(name): value for name, value in headers.items()}
    message.delivery_info = {name: _whole(value) for name, value in message.delivery_info.items()}
    return message


def _whole(value: Any) -> Any:
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


def _not_let_in(address: Address, error: Exception) -> CaptureError:
    return CaptureError(
        f'RabbitMQ at {address} does not let "{address.user}" in',
        detail=f'{_said(error)}. The virtual host is "{address.vhost}".',
        hint="Check the user, the password and the virtual host.",
    )


def _said(error: Exception) -> str:
    if isinstance(error, amqp.AMQPError) and getattr(error, "reply_text", None):
        return str(error.reply_text).rstrip(".")
    if isinstance(error, socket.gaierror | OSError) and error.strerror:
        return str(error.strerror)
    return str(error) or type(error).__name__
