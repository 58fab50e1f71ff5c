"""The words of options: which exist, and what their values look like.

An option that a user gives, in SQL or in Python, is a `Given`: a word and a value with their places. `options_read`
turns them into what the values of this room take, or refuses with the place. Ranges and columns are not looked at here;
`Stream`, `Table`, `ViewOptions` and `PipelineOptions` check those themselves.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from penstock.errors import LogError, ModelError, Spot, did_you_mean, without_secrets
from penstock.log.where import OnKafka, Where, where_of
from penstock.model.duration import parse_duration
from penstock.model.pipeline import OURS
from penstock.model.scanner import Source, name_value, tokens
from penstock.model.sinks import KafkaTopic, Smtp, Webhook, kafka_topic_of, mailboxes_of, smtp_of, webhook_of
from penstock.model.stores import OnPostgres, OnRedis, store_of

T = TypeVar("T")
Kind = Literal["stream", "table", "view", "pipeline"]
SHARE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")


@dataclass(frozen=True)
class Given:
    """An option as the user gave it; in Python, word and value have one place, that of the call."""

    word: str
    value: object
    spot: Spot | None = None
    value_spot: Spot | None = None


@contextmanager
def placed(spot: Spot | None, parts: Mapping[str, Spot | None] | None = None) -> Iterator[None]:
    """An error from inside that has no place yet gets that of the part which it is about, or else `spot`."""
    try:
        yield
    except ModelError as error:
        error.spot = error.spot or (parts or {}).get(error.about) or spot
        raise


def options_read(kind: Kind, given: Sequence[Given]) -> dict[str, Any]:
    """The values of the options, by their words; an option of the pipeline may be one of Spark's."""
    values: dict[str, Any] = {}
    spots: dict[str, Spot | None] = {}
    for each in given:
        word = option_named(each.word)
        with placed(each.spot):
            _check_word(kind, word)
            if word in values:
                raise ModelError(f'option "{word}" is given twice', detail=_other(spots[word]))
        with placed(each.value_spot):
            values[word] = READERS[kind].get(word, _setting)(word, each.value)
        spots[word] = each.spot
    return values


def option_named(written: str) -> str:
    """The option that a word means: case counts only in Spark's own settings, some of which are options of ours."""
    return OURS.get(written, written) if written.startswith("spark.") else written.lower()


def _check_word(kind: Kind, word: str) -> None:
    if word in READERS[kind] or (kind == "pipeline" and word.startswith("spark.")):
        return
    others = [other for other in READERS if word in READERS[other]]
    elsewhere = f"It is an option of a {others[0]}." if others else ""
    known = ", ".join(sorted(READERS[kind])) + (", and Spark's own, spark.*" if kind == "pipeline" else "")
    raise ModelError(
        f'unknown option "{word}"',
        detail=f"The options of a {kind} are {known}.",
        hint=INSTEAD.get((kind, word)) or did_you_mean(word, READERS[kind], otherwise=elsewhere),
    )


def _other(spot: Spot | None) -> str:
    return f"The other one is at {spot}." if spot else ""


def _wrong(word: str, value: object, *, expected: str, hint: str = "") -> ModelError:
    shown = str(value).lower() if isinstance(value, bool) else repr(value)
    return ModelError(f'option "{word}" cannot be {shown}', detail=expected, hint=hint)


def _text(word: str, value: object) -> str:
    if isinstance(value, str) and value:
        return value
    raise _wrong(word, value, expected="It is a text in quotes.")


def _path(word: str, value: object) -> Path:
    return value if isinstance(value, Path) else Path(_text(word, value))


def _log(word: str, value: object) -> Where:
    """A folder, or kafka://HOST:PORT/PREFIX."""
    if isinstance(value, OnKafka):
        return value
    try:
        return where_of(_path(word, value) if isinstance(value, Path) else _text(word, value))
    except LogError as error:
        shown = without_secrets(str(value))
        raise _wrong(word, shown, expected="It is a folder, or an address of Kafka.", hint=error.hint) from None


def _address(made: type[T] | tuple[type[Any], ...], read: Callable[[str], T]) -> Callable[[str, object], T]:
    """The reader of an address; it is not shown where it is wrong: there may be a secret in it."""

    def reader(word: str, value: object) -> T:
        if isinstance(value, made):
            return cast(T, value)
        try:
            return read(_text(word, value))
        except ModelError as error:
            raise ModelError(f'option "{word}" cannot be that', detail=error.detail, hint=error.hint) from None

    return reader


def _secrets(word: str, value: object) -> Path:
    """A file with secrets."""
    found = _path(word, value)
    if found.name.startswith("whsec_"):
        raise ModelError(
            f'option "{word}" names a file',
            detail="This is a secret, and secrets do not belong into a pipeline.",
            hint="Write it into a file, and name that: webhook_secrets = 'webhook.secrets'",
        )
    return found


def _mailboxes(word: str, value: object) -> tuple[str, ...]:
    """'ann@example.org, bob@example.org'  =>  both"""
    given = value if isinstance(value, str) or not isinstance(value, Sequence) else ", ".join(map(str, value))
    try:
        return mailboxes_of(_text(word, given))
    except ModelError as error:
        raise _wrong(word, given, expected=f"{error.primary}.", hint=error.hint) from None


def _count(word: str, value: object) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise _wrong(word, value, expected="It is a whole number.")


def _truth(word: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise _wrong(word, value, expected="It is true or false.")


def _duration(word: str, value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise _wrong(word, value, expected="It is a duration with its unit.", hint="Write it as '10 seconds'.")
    try:
        return parse_duration(value)
    except ModelError as error:
        raise _wrong(
            word, value, expected=error.detail or "It is a duration, and not a negative one.", hint=error.hint
        ) from None


def _share(word: str, value: object) -> Decimal:
    """'0.5 %'  =>  Decimal("0.5")"""
    if isinstance(value, Decimal):
        return value
    found = SHARE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise _wrong(word, value, expected="It is a number of per cent.", hint="Write it as '1 %'.")
    return Decimal(found[1])


def _names(word: str, value: object) -> tuple[str, ...]:
    """'city, hour'  =>  ("city", "hour")"""
    if isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(name, str) for name in value):
        return tuple(value)
    found = list(tokens(Source("", _text(word, value))))
    names, commas = found[::2], found[1::2]
    if any(each.kind not in ("word", "quoted") for each in names) or [c.text for c in commas] != [","] * (
        len(names) - 1
    ):
        raise _wrong(word, value, expected="It is one or more columns.", hint="Write it as 'city' or 'city, hour'.")
    return tuple(name_value(each) for each in names)


def _indexes(word: str, value: object) -> tuple[tuple[str, ...], ...]:
    """'city; hour, city'  =>  (("city",), ("hour", "city"))"""
    if isinstance(value, str):
        found = [_names(word, each) for each in value.split(";")] if value else []
    elif isinstance(value, Sequence):
        found = [_names(word, each) for each in value]
    else:
        found = []
    if not found:
        hint = "Write it as 'city', or 'city; hour, city' for two."
        raise _wrong(word, value, expected="It is the columns of an index.", hint=hint)
    return tuple(found)


def _setting(word: str, value: object) -> str:
    """A setting of Spark, as Spark wants it: as text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    raise _wrong(word, value, expected="It is a text, a number, or true or false.")


READERS: Mapping[Kind, Mapping[str, Callable[[str, object], object]]] = {
    "stream": {
        "event_time": _text,
        "watermark": _duration,
        "watermark_by": _text,
        "idle": _duration,
        "plausible": _duration,
        "retain": _duration,
        "partitions": _count,
        "topic": _text,
        "value_format": _text,
    },
    "table": {
        "event_time": _text,
        "history": _text,
        "watermark": _duration,
        "partitions": _count,
        "topic": _text,
        "value_format": _text,
    },
    "view": {
        "store": _text,
        "key": _names,
        "emit": _text,
        "late": _text,
        "allowed_lateness": _duration,
        "late_alert": _share,
        "retain": _duration,
        "partition_by": _names,
        "index": _indexes,
        "webhook": _address(Webhook, webhook_of),
        "webhook_secrets": _secrets,
        "webhook_attempts": _count,
        "email": _mailboxes,
        "email_every": _duration,
        "kafka": _address(KafkaTopic, kafka_topic_of),
    },
    "pipeline": {
        "max_records_per_batch": _count,
        "trigger_interval": _duration,
        "shuffle_partitions": _count,
        "memory": _text,
        "ansi": _truth,
        "time_zone": _text,
        "log": _log,
        "kafka_settings": _path,
        "checkpoints": _path,
        "store": _address((OnPostgres, OnRedis), store_of),
        "smtp": _address(Smtp, smtp_of),
    },
}
INSTEAD: Mapping[tuple[Kind, str], str] = {
    ("table", "key"): "Write PRIMARY KEY among the columns.",
    ("table", "primary_key"): 'Write PRIMARY KEY among the columns; in Python: key="id".',
    (
        "table",
        "retain",
    ): "A table is kept whole. How long it corrects the rows of a stream is said of those, or of a view.",
    ("stream", "key"): "A stream has no key; write CREATE TABLE for a relation that has one.",
}
