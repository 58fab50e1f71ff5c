"""Logs by their addresses: a folder, or `kafka://HOST:PORT,HOST:PORT/PREFIX`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.app.place import log_in
from penstock.cli.console import say
from penstock.cli.options import opened
from penstock.errors import CommandError, without_secrets
from penstock.log.protocol import AnyLog
from penstock.log.where import OnKafka, where_of

LogPlace = Annotated[
    str | None,
    typer.Option(
        "--log",
        metavar="WHERE",
        envvar="PENSTOCK_LOG",
        help="The folder of the log, or kafka://HOST:PORT/PREFIX; without it, that of the pipeline in this folder.",
        show_default=False,
    ),
]
KafkaSettings = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        metavar="FILE",
        envvar="PENSTOCK_KAFKA_SETTINGS",
        help="Settings of Kafka's client, as JSON: for security.",
        show_default=False,
    ),
]


@contextmanager
def opened_at(where: str | None, settings: Path | None = None, *, create: bool = False) -> Iterator[AnyLog]:
    """The log of that address; without one, the log that `opened` finds."""
    known = _settings(settings)
    place = log_in(Path()) if where is None else where_of(where)
    if where and "://" in where and not isinstance(place, OnKafka):
        raise CommandError(f'"{without_secrets(where)}" is no log', hint="Name a folder, or kafka://HOST:PORT/PREFIX.")
    if not isinstance(place, OnKafka):
        with opened(where, create=create) as log:
            yield log
        return
    from penstock.log.kafka import KafkaLog  # noqa: PLC0415 (an extra, which those with folders need not have)

    with KafkaLog.open(place.servers, prefix=place.prefix, settings=known, create=create, say=say) as log:
        yield log


def _settings(file: Path | None) -> dict[str, Any]:
    """What they are is shown to nobody."""
    if file is None:
        return {}
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise CommandError(f'the settings in "{file}" cannot be read', detail=f"{type(error).__name__}.") from error
    if not isinstance(found, dict):
        raise CommandError(f'the settings in "{file}" are no object', hint='Write {"security.protocol": "SASL_SSL"}.')
    return found
