"""Views: a name, a query, and how its answer is kept.

The query is Spark SQL, kept as the user wrote it, or a function that builds a DataFrame. What it means, and whether it
can be kept up to date, is for the engine to say; `spot_in` leads from Spark's line and column back to the user's file.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, get_args

from penstock.errors import ModelError, Spot, did_you_mean
from penstock.model.relation import check_name, check_word
from penstock.model.sinks import KafkaTopic, Webhook

Store = Literal["table", "topic", "files", "none"]
STORES: tuple[str, ...] = get_args(Store)
Emit = Literal["changes", "final"]
Late = Literal["keep", "drop", "correct"]
MOST = 100
TAKEN = ("sqlite_", "_penstock")
HIDDEN = ("_", ".")
"""What readers of files pass over begins so."""


@dataclass(frozen=True)
class Sql:
    """A query's text; `spot` is where it begins."""

    text: str
    spot: Spot | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise ModelError("the query is empty", about="query")


@dataclass(frozen=True)
class Function:
    """A function from the Spark session to a DataFrame; `spot` is where it was declared."""

    call: Callable[[Any], Any]
    spot: Spot | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        return str(getattr(self.call, "__name__", type(self.call).__name__))

    def __post_init__(self) -> None:
        if not callable(self.call):
            raise ModelError(f"a view is a function, not {self.call!r}", hint="Write @ps.view above a function.")
        try:
            inspect.signature(self.call).bind(None)
        except TypeError as error:
            raise ModelError(
                f'the function "{self.name}" cannot be a view',
                detail="It is called with one argument, the Spark session.",
                hint=f"Write: def {self.name}(spark):",
            ) from error


def _check_lateness(late: Late, allowed: timedelta) -> None:
    if allowed < timedelta(0):
        raise ModelError("allowed_lateness cannot be negative", about="allowed_lateness")
    if (late == "correct") != (allowed > timedelta(0)):
        raise ModelError(
            "late = 'correct' and allowed_lateness belong together",
            detail="Late rows correct a window until it is over for good.",
            hint="Write: WITH (late = 'correct', allowed_lateness = '1 hour')",
            about="allowed_lateness" if allowed else "late",
        )


def _check_columns(word: str, names: tuple[str, ...] | None, called: str) -> None:
    if names is not None and not names:
        raise ModelError(f"{called} has at least one column", about=word)
    if names is not None and len({name.lower() for name in names}) < len(names):
        raise ModelError(f"{called} has a column twice", detail=f"It is {', '.join(names)}.", about=word)


def _check_sinks(options: "ViewOptions") -> None:
    sinks = {"webhook": options.webhook, "email": options.email, "kafka": options.kafka}
    if options.store == "none" and (found := [word for word, where in sinks.items() if where]):
        raise ModelError(
            f"{found[0]} is for views that are kept",
            detail="The view has store = 'none': its changes are not told.",
            hint="Write: store = 'topic'",
            about=found[0],
        )
    if (options.webhook is None) != (options.webhook_secrets is None):
        raise ModelError(
            "webhook and webhook_secrets belong together",
            detail="What is posted is signed, with the secrets in a file.",
            hint="Write: WITH (webhook = 'https://HOST/PATH', webhook_secrets = 'FILE')",
            about="webhook" if options.webhook else "webhook_secrets",
        )
    if options.webhook_attempts < 1:
        raise ModelError("webhook_attempts is at least 1", about="webhook_attempts")
    if options.email_every < timedelta(0):
        raise ModelError("email_every cannot be negative", about="email_every")


@dataclass(frozen=True)
class ViewOptions:
    """How an answer is kept: as a table with its topic of changes, as the topic alone, as the topic and files, or not
    at all.

    `key` names columns that identify a row, where the query itself does not tell. `emit`: windows are shown as they
    fill, or once they are complete. `late`: rows that come after that are kept in a topic of their own, or dropped, or
    correct the window as long as `allowed_lateness` says. When more than `late_alert` per cent are late, a run says so.
    `retain`: for so long after their time rows of streams are corrected by what has no time; otherwise as streams say.
    `partition_by` names the columns whose values are the folders that files lie in, `index` those of each index that
    stores keep for readers.
    `webhook` is where changes are posted, signed with the secrets in the file `webhook_secrets`, at most so many times
    each; `email` to whom they are mailed, not more often than `email_every`; `kafka` the topic that they go to.
    """

    store: Store = "table"
    key: tuple[str, ...] | None = None
    emit: Emit = "changes"
    late: Late = "keep"
    allowed_lateness: timedelta = timedelta(0)
    late_alert: Decimal | None = None
    retain: timedelta | None = None
    partition_by: tuple[str, ...] | None = None
    index: tuple[tuple[str, ...], ...] | None = None
    webhook: Webhook | None = None
    webhook_secrets: Path | None = None
    webhook_attempts: int = 20
    email: tuple[str, ...] | None = None
    email_every: timedelta = timedelta(minutes=1)
    kafka: KafkaTopic | None = None

    def __post_init__(self) -> None:
        if self.store not in STORES:
            raise ModelError(
                f'a view cannot be stored as "{self.store}"',
                detail=f"The stores are {', '.join(STORES)}.",
                hint=did_you_mean(self.store, STORES),
                about="store",
            )
        check_word("emit", self.emit, get_args(Emit))
        check_word("late", self.late, get_args(Late))
        _check_lateness(self.late, self.allowed_lateness)
        if self.retain is not None and self.retain < timedelta(0):
            raise ModelError("retain cannot be negative", about="retain")
        if self.late_alert is not None and not 0 <= self.late_alert < MOST:
            raise ModelError(
                f"late_alert cannot be {self.late_alert} %",
                detail="It is how many of a hundred rows may be late.",
                hint="Write: late_alert = '1 %'",
                about="late_alert",
            )
        _check_columns("key", self.key, "a view's key")
        _check_columns("partition_by", self.partition_by, "partition_by")
        if self.partition_by is not None and self.store != "files":
            raise ModelError(
                "partition_by is for views that are kept as files",
                detail=f"The view has store = '{self.store}'.",
                hint="Write: WITH (store = 'files', partition_by = 'day')",
                about="partition_by",
            )
        for columns in self.index or ():
            _check_columns("index", columns, "an index")
        if self.index is not None and self.store != "table":
            raise ModelError(
                "index is for views that are kept as tables",
                detail=f"The view has store = '{self.store}'.",
                hint="Leave one of the two away.",
                about="index",
            )
        _check_sinks(self)


@dataclass(frozen=True)
class View:
    name: str
    query: Sql | Function
    options: ViewOptions = ViewOptions()
    spot: Spot | None = field(default=None, compare=False, repr=False)
    key_spot: Spot | None = field(default=None, compare=False, repr=False)
    partition_spot: Spot | None = field(default=None, compare=False, repr=False)
    index_spot: Spot | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_name("view", self.name)
        if self.options.store == "table" and self.name.lower().startswith(TAKEN):
            raise ModelError(
                f'a view that is kept as a table cannot be named "{self.name}"',
                detail=f"Names that begin with {' or '.join(TAKEN)} belong to the store itself.",
                hint="Give it another name, or store = 'topic'.",
                about="name",
            )
        if self.options.store == "files" and self.name.startswith(HIDDEN):
            raise ModelError(
                f'a view that is kept as files cannot be named "{self.name}"',
                detail="Its folder has its name, and readers of files pass over folders that begin with _.",
                hint="Give it another name, or store = 'topic'.",
                about="name",
            )


def spot_in(query: Sql, line: int, column: int) -> Spot:
    """Line and column inside the query, both from 1  =>  the place in the user's file.

    Spark's messages count columns from 0 where they say `pos`: add one.
    """
    lines = query.text.split("\n")
    start = query.spot or Spot("query", 1, 1, lines[0])
    if line <= 1:
        return Spot(start.file, start.line, start.column + column - 1, start.text)
    text = lines[line - 1] if line <= len(lines) else ""
    return Spot(start.file, start.line + line - 1, column, text.rstrip("\r"))
