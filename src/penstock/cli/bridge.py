"""`penstock bridge amqp`: a queue of RabbitMQ becomes a topic, a topic goes to an exchange."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.console import say
from penstock.cli.logs import KafkaSettings, LogPlace, opened_at
from penstock.cli.options import TopicName
from penstock.cli.stopping import Stopping
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.capture.amqp import Tally

TERMINAL_SECONDS, PIPE_SECONDS = 0.5, 10.0
"""How often it is told how far the work is."""
Broker = Annotated[
    str,
    typer.Option(
        "--amqp",
        metavar="URL",
        envvar="PENSTOCK_AMQP",
        help="amqp://USER:PASSWORD@HOST:PORT/VHOST, or amqps://; better in the environment, where nobody sees it.",
        show_default=False,
    ),
]
Name = Annotated[
    str | None,
    typer.Option(help="Under which the log remembers what this bridge has done.", show_default=False),
]


def consume(  # noqa: PLR0913 (the options of a command)
    queue: Annotated[str, typer.Argument(metavar="QUEUE", help="The name of the queue.", show_default=False)],
    topic: TopicName,
    *,
    amqp: Broker = "amqp://localhost",
    log: LogPlace = None,
    settings: KafkaSettings = None,
    name: Name = None,
    remember: Annotated[int, typer.Option(metavar="N", help="Know the ids of the last N messages.")] = 200_000,
    id_header: Annotated[
        str | None, typer.Option(metavar="HEADER", help="The id is in this header, not in message-id.")
    ] = None,
    require_id: Annotated[bool, typer.Option("--require-id", help="Messages without an id are dead letters.")] = False,
    ignore_unknown: Annotated[
        bool, typer.Option("--ignore-unknown", help="Fields that the topic does not have are left out.")
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="End when the queue is empty.")] = False,
) -> None:
    """Take the messages of a queue into a topic, each once, until Ctrl-C.

    Messages are JSON objects with the topic's columns; for a raw topic they are any bytes. They are acknowledged when
    they are durably in the log, with their ids. What comes again is known by its id. Messages that the topic cannot
    hold are dead letters, in the topic amqp.NAME.dead-letters. NAME is that of the queue, unless --name says otherwise.
    """
    from penstock.capture.amqp import Consuming, Intake, parse_address  # noqa: PLC0415 (an extra)
    from penstock.capture.amqp.sorting import Rules  # noqa: PLC0415 (an extra)

    address = parse_address(amqp)
    rules = Rules(queue, id_header, strict=require_id)
    intake = Intake(queue, topic, name or queue, rules, remember, unknown_fields=ignore_unknown)
    with Stopping() as stop, opened_at(log, settings) as target, _telling(f'into "{topic}"', "known already") as teller:
        bridge = Consuming(target, address, intake, say=teller.say, stop=stop, told=teller.tell)
        teller.tally = bridge.tally
        bridge.run(once=once)


def publish(  # noqa: PLR0913 (the options of a command)
    topic: TopicName,
    exchange: Annotated[
        str, typer.Argument(metavar="EXCHANGE", help="The name of the exchange; '' is the default one.")
    ],
    *,
    amqp: Broker = "amqp://localhost",
    log: LogPlace = None,
    settings: KafkaSettings = None,
    name: Name = None,
    routing_key: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The topic's name without it.", show_default=False)
    ] = None,
    routing_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The routing key is the value of this column.")
    ] = None,
    session: Annotated[
        float, typer.Option(metavar="SECONDS", help="After a kill, another goes on when so much time has passed.")
    ] = 10.0,
    once: Annotated[bool, typer.Option("--once", help="End when all records have gone over.")] = False,
) -> None:
    """Publish the records of a topic to an exchange, each at least once, until Ctrl-C.

    How far it has come is remembered when RabbitMQ has confirmed the messages: in the log's group NAME, which is
    TOPIC-to-EXCHANGE unless --name says otherwise. After a kill, messages that were on their way are sent again, under
    the same message-id. Messages for which there is no queue are dead letters, in the topic amqp.NAME.dead-letters.
    """
    from penstock.capture.amqp import Publishing, Routing, parse_address  # noqa: PLC0415 (an extra)

    if routing_key is not None and routing_column is not None:
        raise typer.BadParameter("goes without --routing-key", param_hint="--routing-column")
    address = parse_address(amqp)
    routing = Routing(exchange, topic if routing_key is None else routing_key, routing_column)
    with (
        Stopping() as stop,
        opened_at(log, settings) as source,
        _telling(f'to "{exchange}"', "sent again") as teller,
    ):
        bridge = Publishing(
            source,
            address,
            topic,
            routing,
            name=name or f"{topic}-to-{exchange or 'default'}",
            say=teller.say,
            stop=stop,
            told=teller.tell,
            session=timedelta(seconds=session),
        )
        teller.tally = bridge.tally
        bridge.run(once=once)


class _Teller:
    """One line that changes on a terminal; elsewhere a line now and then."""

    def __init__(self, where: str, again: str) -> None:
        self.tally: Tally | None = None
        self._where = where
        self._again = again
        self._live = sys.stderr.isatty()
        self._open = False
        self._began = self._at = time.monotonic()

    def say(self, text: str) -> None:
        self.end()
        say(text)

    def tell(self, tally: "Tally") -> None:
        if time.monotonic() - self._at < (TERMINAL_SECONDS if self._live else PIPE_SECONDS):
            return
        self._at = time.monotonic()
        text = self.text(tally) + f"; {tally.messages / (self._at - self._began):,.0f}/s"
        if not self._live:
            say(text)
            return
        width = os.get_terminal_size(sys.stderr.fileno()).columns  # a line that wraps cannot be taken back
        sys.stderr.write(f"\r\x1b[K{text[: width - 1] if width else text}")
        sys.stderr.flush()
        self._open = True

    def text(self, tally: "Tally") -> str:
        again = f"; {tally.repeated:,} {self._again}" if tally.repeated else ""
        letters = f"; {tally.letters:,} dead letter{'' if tally.letters == 1 else 's'}" if tally.letters else ""
        full = f"; {tally.dropped:,} left out: the topic is full" if tally.dropped else ""
        return f"{tally.messages:,} message{'' if tally.messages == 1 else 's'} {self._where}{again}{letters}{full}"

    def over(self, *, quiet: bool = False) -> None:
        self.end()
        tally = self.tally
        if tally is not None and not (quiet and not tally.messages + tally.repeated + tally.letters + tally.dropped):
            say(self.text(tally))

    def end(self) -> None:
        """What comes next begins on a line of its own."""
        if self._open:
            say("")
        self._open = False


@contextmanager
def _telling(where: str, again: str) -> Iterator[_Teller]:
    """Says in the end what was done, however it ended; nothing of an error before anything was done."""
    teller = _Teller(where, again)
    try:
        yield teller
    except PenstockError:
        teller.over(quiet=True)
        raise
    except BaseException:
        teller.over()
        raise
    teller.over()
