"""A pipeline: relations, views over them, and the options they run with.

Names are unique regardless of case, as in Spark. Views may stand in any order; whether they refer to each other in a
circle is for the engine to say, which knows what a query reads.
"""

import re
import zoneinfo
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from penstock.errors import ModelError, did_you_mean
from penstock.log.where import Where
from penstock.model.relation import Relation
from penstock.model.sinks import Smtp
from penstock.model.stores import OnServer
from penstock.model.view import View

T = TypeVar("T", bound=Relation | View)
PIPELINE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
MEMORY = re.compile(r"[1-9][0-9]*[kmgt]")
OFFSET = re.compile(r"[+-]\d{2}:\d{2}")
# Spark's names for what is an option of ours: one truth, whichever name the user prefers.
OURS: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "ansi",
    "spark.sql.session.timeZone": "time_zone",
    "spark.sql.shuffle.partitions": "shuffle_partitions",
    "spark.driver.memory": "memory",
}


@dataclass(frozen=True)
class PipelineOptions:
    """What a pipeline runs with.

    `trigger_interval` is the time from the start of one batch to the start of the next, if the first is done by then.
    Without `shuffle_partitions` there are as many as tasks at once; without `log` the log lies where the command says.
    `checkpoints` is a folder that all machines of a cluster share, where state and checkpoints lie.
    `kafka_settings` is a file with settings of Kafka's client, for a log that is there.
    `store` is where the tables of views are kept, if not beside the pipeline; `smtp` the server that takes e-mails.
    `memory` is that of Spark's driver, which on one machine is all there is.
    """

    max_records_per_batch: int = 500_000
    trigger_interval: timedelta = timedelta(milliseconds=100)
    shuffle_partitions: int | None = None
    memory: str = "2g"
    ansi: bool = False
    time_zone: str = "UTC"
    log: Where | None = None
    kafka_settings: Path | None = None
    checkpoints: Path | None = None
    store: OnServer | None = None
    smtp: Smtp | None = None
    spark: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        _check_at_least_one("max_records_per_batch", self.max_records_per_batch)
        if self.shuffle_partitions is not None:
            _check_at_least_one("shuffle_partitions", self.shuffle_partitions)
        if self.trigger_interval < timedelta(0):
            raise ModelError('option "trigger_interval" cannot be negative', about="trigger_interval")
        if not MEMORY.fullmatch(self.memory):
            raise ModelError(f'"{self.memory}" is no amount of memory', hint="Write it as 512m or 4g.", about="memory")
        _check_time_zone(self.time_zone)
        for name in self.spark:
            _check_setting(name)


@dataclass(frozen=True)
class Pipeline:
    name: str
    folder: Path
    relations: tuple[Relation, ...] = ()
    views: tuple[View, ...] = ()
    options: PipelineOptions = field(default_factory=PipelineOptions)

    def __post_init__(self) -> None:
        if not PIPELINE_NAME.fullmatch(self.name):
            raise ModelError(
                f'a pipeline cannot be named "{self.name}"',
                detail="A pipeline has the name of its folder.",
                hint="Use letters, digits, dot, dash and underscore, at most 100, not beginning with dot or dash.",
            )
        seen: dict[str, Relation | View] = {}
        for declared in _by_name(self):
            if (other := seen.setdefault(declared.name.lower(), declared)) is not declared:
                raise _declared_twice(declared, other)
        for view in self.views if self.options.smtp is None else ():
            if view.options.email:
                raise ModelError(
                    f'view "{view.name}" has an e-mail address, but there is no mail server',
                    hint="Write: SET smtp = 'smtp://USER@HOST:PORT';",
                    spot=view.spot,
                )

    def relation(self, name: str) -> Relation:
        return _named("relation", name, self.relations)

    def view(self, name: str) -> View:
        return _named("view", name, self.views)


def _by_name(pipeline: Pipeline) -> Iterator[Relation | View]:
    yield from pipeline.relations
    yield from pipeline.views


def _declared_twice(declared: Relation | View, other: Relation | View) -> ModelError:
    return ModelError(
        f'"{declared.name}" is declared twice',
        detail=f"The other one is at {other.spot}." if other.spot else "",
        hint="Streams, tables and views share one set of names, and case does not count.",
        spot=declared.spot,
    )


def _named(what: str, name: str, known: Sequence[T]) -> T:
    for each in known:
        if each.name.lower() == name.lower():
            return each
    names = [each.name for each in known]
    raise ModelError(
        f'{what} "{name}" does not exist',
        detail=f"The {what}s are {', '.join(names)}." if names else f"The pipeline has no {what}s.",
        hint=did_you_mean(name, names),
    )


def _check_at_least_one(name: str, value: int) -> None:
    if value < 1:
        raise ModelError(f'option "{name}" cannot be {value}', hint="It is at least 1.", about=name)


def _check_time_zone(name: str) -> None:
    known = zoneinfo.available_timezones() if name != "UTC" and not OFFSET.fullmatch(name) else set()
    # A machine without a time zone database knows none; Java brings its own.
    if known and name not in known:
        raise ModelError(
            f'"{name}" is no time zone',
            hint=did_you_mean(name, known, otherwise="Write it as Europe/Berlin or +02:00."),
            about="time_zone",
        )


def _check_setting(name: str) -> None:
    if not name.startswith("spark."):
        raise ModelError(
            f'"{name}" is no setting of Spark',
            detail="The names of Spark's settings begin with spark.",
            hint=f'Did you mean "spark.{name}"?',
            about=name,
        )
    if name in OURS:
        raise ModelError(f'"{name}" is the option "{OURS[name]}"', hint=f"Set {OURS[name]} instead.", about=name)
