"""RedisStore: the views of a pipeline in Redis, a hash for every row.

A call is one script: the changes of all views and the position happen together, and nothing else meanwhile. A switch
fills names that nobody reads, and then renames them, in one script. How durable a call is depends on how Redis writes
down what it did; a server that has forgotten the last calls has forgotten their position with them, and is told again.

One server, or a primary with replicas: not a cluster, for a script touches all keys of a store.
"""

import json
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import redis

from penstock.errors import ViewError, without_secrets
from penstock.schema import parse_schema
from penstock.views.redis.rows import ROW, Op, ops_of, refusal
from penstock.views.redis.scripts import APPLY, SWAP
from penstock.views.step import Change, Lineage, Position, Step, View
from penstock.views.steps import grouped

FORMAT = "1"
AT_ONCE = 10_000
STAGED = "~"
"""Between the prefix and what is on its way."""
STAGED_SECONDS = 3600
TIMEOUT_SECONDS = 60
WRITING = ("aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress")
PASSWORD = "REDISCLI_AUTH"
"""The environment variable with the password."""


class RedisStore:
    """A `Store` under a prefix of keys, at `redis://...`. Use it in a `with`, or call `close`; one thread at a time."""

    def __init__(self, url: str, prefix: str) -> None:
        _check_prefix(prefix)
        self._url = url
        self._prefix = prefix
        with told(url):
            self._client = connected(url)

    def __repr__(self) -> str:
        return f"RedisStore({without_secrets(self._url)!r}, {self._prefix!r})"

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def position(self) -> Position | None:
        with told(self._url):
            return read_position(self._client, self._prefix)

    def apply(self, steps: Sequence[Step]) -> None:
        position = self.position()
        if position is None:
            raise ViewError("the store has no views yet", hint="It must be switched to a lineage first.")
        fresh = [step for step in steps if step.position.frame > position.frame]
        with told(self._url):
            views = {view.name: view for view in read_views(self._client, self._prefix)}
            self._take(self._prefix, views, fresh, position)

    def switch(self, lineage: Lineage, steps: Iterable[Step]) -> None:
        position = self.position()
        if position is not None and position.frame >= lineage.frame:
            return
        for view in lineage.tables:
            _check_columns(view)
        with told(self._url), self._tidied():
            before = read_views(self._client, self._prefix)
            filled, views = f"{self._prefix}{STAGED}{uuid4().hex}", {view.name: view for view in lineage.tables}
            self._client.hset(filled, mapping={"format": FORMAT, "views": _views_text(lineage.tables)})
            at: Position | None = None
            for group in grouped(steps, lambda step: sum(map(len, step.changes))):
                self._take(filled, views, group, at or group[0].position, first=at is None)
                at = group[-1].position
            frame = str(position.frame) if position else ""
            said = self._client.eval(SWAP, 2, self._prefix, filled, frame, _kinds(before), _kinds(lineage.tables))
            _check_done(said, {})

    def purge(self) -> None:
        """What Redis has written down is written anew, without the rows that are not held any more."""
        with told(self._url):
            self._tidy()
            if self._client.info("persistence")["aof_enabled"]:
                self._client.bgrewriteaof()
            else:
                self._client.bgsave(schedule=True)
            while any(self._client.info("persistence")[each] for each in WRITING):
                time.sleep(0.05)

    def _take(
        self, store: str, views: dict[str, View], steps: Sequence[Step], before: Position, *, first: bool = False
    ) -> None:
        parts: dict[str, list[tuple[int, Change]]] = defaultdict(list)
        for step in steps:
            if (step.position.log, step.position.lineage) != (before.log, before.lineage):
                raise ViewError(f"the store holds lineage {before.lineage}, not {step.position.lineage}")
            for change in step.changes:
                parts[change.view].append((step.position.frame, change))
        if steps:
            staged = f"{self._prefix}{STAGED}{uuid4().hex}"
            for view, changes in parts.items():
                self._stage(staged, ops_of(views[view], changes))
            stands = "" if first else str(before.frame)
            said = self._client.eval(APPLY, 2, store, staged, stands, *_position_fields(steps[-1].position))
            _check_done(said, views)

    def _stage(self, name: str, ops: Iterator[Op]) -> None:
        waiting: list[bytes] = []
        for op in ops:
            waiting += op
            if len(waiting) >= AT_ONCE:
                self._client.rpush(name, *waiting)
                waiting = []
        if waiting:
            self._client.rpush(name, *waiting)
        self._client.expire(name, STAGED_SECONDS)

    @contextmanager
    def _tidied(self) -> Iterator[None]:
        """Nothing is left of a switch that was refused, and at the next one nothing of one that was killed."""
        self._tidy()
        try:
            yield
        except ViewError:
            self._tidy()
            raise

    def _tidy(self) -> None:
        for name in self._client.scan_iter(match=f"{_literal(self._prefix)}{STAGED}*", count=1000):
            self._client.delete(name)


def _check_prefix(prefix: str) -> None:
    if STAGED in prefix:
        raise ViewError(
            f'keys of a store in Redis cannot begin with "{prefix}"',
            detail=f'Behind "{STAGED}" lies what is on its way into another store, which tidies up there.',
            hint="Name another one in the store's address: ?prefix=NAME",
        )


def _check_columns(view: View) -> None:
    if view.key and ROW in view.schema.names:
        raise ViewError(
            f'column "{ROW}" of view "{view.name}" cannot be kept in Redis',
            detail="The store needs the name for itself.",
            hint="Give it another name in the query: AS other_name.",
        )


def connected(url: str) -> Any:
    """A client; a password that is not in the address may stand where Redis' own program looks for it."""
    password = os.environ.get(PASSWORD)
    return redis.Redis.from_url(url, password=password, socket_timeout=TIMEOUT_SECONDS, socket_connect_timeout=10)


def read_position(client: Any, prefix: str) -> Position | None:
    found = client.hmget(prefix, "format", "log", "lineage", "frame", "batch", "until")
    if found[0] is None:
        return None
    if found[0].decode() != FORMAT:
        raise ViewError(
            f'the store "{prefix}" in Redis has format {found[0].decode()}',
            detail=f"This version of Penstock knows format {FORMAT}.",
            hint="Delete its keys: it fills itself from the log.",
        )
    log, lineage, frame, batch, until = (each.decode() for each in found[1:])
    return Position(log, int(lineage), int(frame), int(batch) if batch else None, int(until))


def read_views(client: Any, prefix: str) -> tuple[View, ...]:
    text = client.hget(prefix, "views")
    found = json.loads(text) if text else []
    return tuple(View(each["name"], parse_schema(each["schema"]), tuple(each["key"])) for each in found)


def _views_text(views: Sequence[View]) -> str:
    return json.dumps([{"name": view.name, "schema": str(view.schema), "key": view.key} for view in views])


def _kinds(views: Sequence[View]) -> str:
    return json.dumps([{"name": view.name, "keyed": bool(view.key)} for view in views])


def _position_fields(to: Position) -> list[str]:
    batch = "" if to.batch is None else str(to.batch)
    fields = {"log": to.log, "lineage": to.lineage, "frame": to.frame, "batch": batch, "until": to.until}
    return [str(each) for pair in fields.items() for each in pair]


def _check_done(said: list[bytes], views: dict[str, View]) -> None:
    match [each.decode(errors="replace") for each in said]:
        case ["done"]:
            return
        case ["unfit", name, key, how]:
            view = views[name.rpartition(":")[2]]
            what = "a row whose key is there already" if how == "there" else "a row that leaves and is not there"
            raise refusal(view, f"{what}: {key[:200]}")
        case _:
            raise ViewError(
                "somebody else has written to the store in Redis",
                detail=f"It has moved to frame {said[1].decode() or 'none'} meanwhile.",
                hint="Is the pipeline running twice?",
            )


def _literal(name: str) -> str:
    return "".join(f"\\{each}" if each in "*?[]^\\-" else each for each in name)


@contextmanager
def told(url: str) -> Iterator[None]:
    """Redis' errors as ours."""
    try:
        yield
    except redis.RedisError as error:
        where, detail = without_secrets(url), f"{without_secrets(str(error)).rstrip('.')}."
        away = isinstance(error, redis.ConnectionError | redis.TimeoutError)
        if away and not isinstance(error, redis.AuthenticationError):
            raise ViewError(
                f'the store "{where}" cannot be reached',
                detail=detail,
                hint="It is tried again; what it has missed meanwhile it reads then.",
            ) from error
        raise ViewError(f'the store "{where}" cannot be used', detail=detail) from error
