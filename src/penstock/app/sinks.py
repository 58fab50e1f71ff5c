"""Sinks: the changes of views go where their declarations say, while a pipeline runs.

What one is behind at the end of a run the next run sends; only a run that is told to end by itself waits for that.
"""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from random import Random
from typing import Protocol

from penstock.app.keeping import OnTrouble, Stop, Work, working_beside
from penstock.app.place import Place
from penstock.errors import PenstockError, ViewError
from penstock.log.disk import Disk
from penstock.log.opening import settings_in
from penstock.log.protocol import OrderedLog
from penstock.model import Pipeline
from penstock.model.sinks import KafkaTopic, Smtp
from penstock.views.sinks import Courier, Delivery, Mail, Post, Source, redrive
from penstock.views.sinks.again import redriven_path
from penstock.views.sinks.delivering import dead_topic
from penstock.views.sinks.mail import Server
from penstock.views.sinks.memory import Memory, Notes

if find_spec("confluent_kafka") is not None:
    from penstock.views.sinks import kafka

PASSWORD = "PENSTOCK_SMTP_PASSWORD"
"""The environment variable with the password of the mail server."""


class Sink(Protocol):
    def run(self, stop: Stop | None, well: Callable[[], None]) -> None: ...


@contextmanager
def sinks_at_work(
    place: Place, pipeline: Pipeline, log: OrderedLog, on_trouble: OnTrouble, *, to_the_end: bool
) -> Iterator[None]:
    """Inside, all sinks follow the log; with `to_the_end` all that was committed has gone out after it."""

    def of(make: Callable[[], Sink]) -> Work:
        made: list[Sink] = []
        with suppress(PenstockError):  # it is told of as everything else that fails
            made.append(make())  # now: a sink that is new begins here

        def work(stop: Stop | None, well: Callable[[], None]) -> None:
            if stop is not None or to_the_end:
                if not made:
                    made.append(make())
                made[0].run(stop, well)

        return work

    with ExitStack() as stack:
        for view in pipeline.views:
            for what, make in _sinks(place, pipeline, Source(log, pipeline.name, view.name), on_trouble):
                stack.enter_context(working_beside(f'the {what} of view "{view.name}"', of(make), on_trouble))
        yield


def redriven(  # noqa: PLR0913 (which letters, and how many)
    place: Place,
    pipeline: Pipeline,
    log: OrderedLog,
    view: str,
    *,
    kind: str | None = None,
    limit: int | None = None,
    stop: Stop = lambda: False,
) -> dict[str, int]:
    """Sends the dead letters of a view's sinks again, or of its sink of one kind, at most so many of each, none after
    `stop`; how many of each kind were taken.
    """
    source = Source(log, pipeline.name, pipeline.view(view).name)
    known = {topic.name for topic in log.topics()}

    def sent(courier: Courier) -> int:
        path = redriven_path(place.sinks, source.view, courier.kind)
        return redrive(source, courier, path, Disk(), limit=limit, stop=stop)

    return {
        each.kind: sent(each)
        for each in _couriers(place, pipeline, source)
        if kind in (None, each.kind) and dead_topic(pipeline.name, source.view, each.kind) in known
    }


def _sinks(
    place: Place, pipeline: Pipeline, source: Source, on_trouble: OnTrouble
) -> Iterator[tuple[str, Callable[[], Sink]]]:
    """What a view has, by its kind, to be made."""
    for courier in _couriers(place, pipeline, source):
        yield courier.kind, partial(_delivery, place, source, courier, on_trouble)
    if (topic := pipeline.view(source.view).options.kafka) is not None:
        yield "topic of Kafka", partial(_topic, place, pipeline, source, topic)


def _delivery(place: Place, source: Source, courier: Courier, on_trouble: OnTrouble) -> Delivery:
    memory = Memory(source.log, place.sinks / f"{source.view}.{courier.kind}.json", Disk())
    return Delivery(source, courier, memory, tell=on_trouble, chance=Random())


def _topic(place: Place, pipeline: Pipeline, source: Source, topic: KafkaTopic) -> "kafka.TopicSink":
    if find_spec("confluent_kafka") is None:
        raise ViewError(
            f'view "{source.view}" cannot go to Kafka here',
            detail="The package confluent_kafka is not installed.",
            hint="Install it: pip install 'penstock[kafka]'",
        )
    settings = place.opening(pipeline).settings
    notes = Notes(source.log, place.sinks / f"{source.view}.kafka.json", Disk())
    return kafka.TopicSink(source, topic.servers, topic.topic, settings_in(settings), notes)


def _couriers(place: Place, pipeline: Pipeline, source: Source) -> Iterator[Courier]:
    options = pipeline.view(source.view).options
    if options.webhook is not None and options.webhook_secrets is not None:
        secrets = place.folder / options.webhook_secrets
        yield Post(source, options.webhook.url, secrets=secrets, attempts=options.webhook_attempts)
    if options.email is not None and (smtp := pipeline.options.smtp) is not None:
        server = Server(smtp.host, smtp.port, smtp.tls, smtp.starttls, smtp.user, _password(smtp))
        yield Mail(source, server, sender=_sender(smtp), to=options.email, every=options.email_every)


def _password(smtp: Smtp) -> str:
    return smtp.password or os.environ.get(PASSWORD, "")


def _sender(smtp: Smtp) -> str:
    return smtp.sender or (smtp.user if "@" in smtp.user and smtp.user.isascii() else f"penstock@{socket.getfqdn()}")
