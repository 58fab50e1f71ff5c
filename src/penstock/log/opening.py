"""Opening a log with one order, wherever it is."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from penstock.errors import LogError
from penstock.log.log import Log
from penstock.log.protocol import OrderedLog
from penstock.log.where import Where

LONG = timedelta(days=365)
"""Who runs a pipeline waits for brokers that are away."""


@dataclass(frozen=True)
class How:
    """What a log on Kafka needs besides its place: a folder for its mirror, settings of the client, who hears of
    brokers that are away. With `admits`, records of other programs get their place in the order; `owner` is the epoch
    of who does so.
    """

    mirror: Path
    settings: Path | None = None
    say: Callable[[str], None] | None = None
    admits: bool = False
    owner: str | None = None


@contextmanager
def opened_log(where: Where, how: How, *, create: bool = True) -> Iterator[OrderedLog]:
    if isinstance(where, Path):
        with Log.open(where, create=create) as log:
            yield log
        return
    from penstock.log.kafka import OrderedKafkaLog  # noqa: PLC0415 (an extra, which those with a folder need not have)

    told = {} if how.say is None else {"say": how.say}
    patience = {"patience": LONG} if how.admits else {}
    with OrderedKafkaLog.open(
        where.servers,
        prefix=where.prefix,
        folder=how.mirror,
        settings=settings_in(how.settings),
        create=create,
        admits=how.admits,
        owner=how.owner,
        **told,  # type: ignore[arg-type]
        **patience,  # type: ignore[arg-type]
    ) as kafka:
        yield kafka


def settings_in(file: Path | None) -> Mapping[str, Any]:
    """The settings of Kafka's client in a file. What they are is shown to nobody."""
    if file is None:
        return {}
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise LogError(
            f'the settings of Kafka\'s client in "{file}" cannot be read', detail=f"{type(error).__name__}."
        ) from None
    if not isinstance(found, dict):
        raise LogError(
            f'the settings of Kafka\'s client in "{file}" are no object',
            hint='Write {"security.protocol": "SASL_SSL", ...}.',
        )
    return found
