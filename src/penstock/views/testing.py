"""A test kit for stores: whether one keeps the promises of `Store`, whatever it is made of.

    from penstock.views.testing import check_store

    def test_my_store(tmp_path):
        check_store(lambda: MyStore(tmp_path), lambda store, view: store.rows(view), kills=3)

A random story of two views, one with a key and a bag, is told to the store: in pieces of any size, some of them twice,
with the store opened anew now and then, interrupted, and killed with its process as often as `kills` says. After every
call the store must hold what the story had come to at the position that the store says it has. `AssertionError` says
which promise was broken.
"""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import IO, Any

import pyarrow as pa

from penstock.schema import Schema, arrow_schema, parse_schema
from penstock.views.step import Change, Kept, Lineage, Position, Row, Step, View
from penstock.views.store import Store

KEYED = View("totals", parse_schema("name STRING, n BIGINT, total DECIMAL(12,2), share DOUBLE"), key=("name",))
BAG = View("visits", parse_schema("name STRING, at TIMESTAMP"))
OTHER = replace(KEYED, schema=parse_schema("name STRING, rank INT"))
NAMES = ("ann", "bob", "", None, "Zürich", "it's")
START = datetime(2024, 1, 1, tzinfo=UTC)
SHORTEST_SECONDS = 0.002
STEPS_A_KILL = 6
Contents = Mapping[str, Counter[str]]
Opener = Callable[[], Store]
Reader = Callable[[Store, str], Iterable[Mapping[str, Any]]]


def check_store(
    open_store: Opener, rows: Reader, *, seed: int = 0, batches: int = 40, kills: int = 0, kept: Kept = "table"
) -> None:
    """Tells a new store a story. `open_store` opens it, again and again, the way a program does that was started anew;
    `rows` are those of a view in it, with the values that they came with. With `kills`, processes that write to it are
    killed: for stores that outlive one. A store of views that are `kept` as files is told of rows that come only, and
    must refuse one that leaves.
    """
    kit = _Kit(open_store, rows, Random(seed), kept)
    first, second = kit.story(1, (KEYED, BAG), batches + STEPS_A_KILL * kills), kit.story(2, (OTHER, BAG), batches // 2)
    assert open_store().position() is None, "a store that is new has no position"
    kit.begin(first)
    kit.tell(first)
    kit.interrupt(first)
    kit.refuse(first)
    for _ in range(kills):
        kit.kill(first)
    kit.tell(first, to_the_end=True)
    kit.switch(second)


@dataclass
class _Story:
    """A lineage: its steps, and what its views hold after each, and before the first."""

    lineage: Lineage
    steps: list[Step]
    held: dict[int, Contents]

    @property
    def start(self) -> Position:
        return Position("kit", self.lineage.number, self.lineage.frame)


class _Interrupted(Exception):
    pass


class _Kit:
    def __init__(self, open_store: Opener, rows: Reader, random: Random, kept: Kept) -> None:
        self._open = open_store
        self._rows = rows
        self._random = random
        self._kept = kept

    def story(self, number: int, views: tuple[View, ...], batches: int) -> _Story:
        lineage = Lineage("kit", number, number * 10_000, tuple(replace(view, kept=self._kept) for view in views))
        held = {view.name: list[Row]() for view in views}
        story = _Story(lineage, [], {lineage.frame: _counted(held)})
        for batch in range(batches):
            position = Position("kit", number, lineage.frame + 1 + 2 * batch, batch, batch + 1)
            changes = [change for view in views if (change := self._change(view, held[view.name])) is not None]
            story.steps.append(Step(position, tuple(changes)))
            story.held[position.frame] = _counted(held)
        return story

    def _change(self, view: View, held: list[Row]) -> Change | None:
        """Changes the rows that are held, and tells how."""
        pairs: list[tuple[Row | None, Row | None]] = []
        grows = self._kept == "files"
        for each in self._random.sample(NAMES, self._random.randrange(len(NAMES))):
            name = f"{each} {len(held)}" if grows and view.key else each  # a key of its own
            old = None if grows else next((row for row in held if row["name"] == name), None)
            new = self._row(view, name) if old is None or self._random.random() < 0.7 else None
            if view.key or new is None:
                pairs.append((old, new))
                held[:] = [row for row in held if row is not old]
            else:
                pairs += [(None, new)] * 2  # equal rows
                held.append(dict(new))
            held += [new] if new is not None else []
        return change_of(view, pairs) if pairs else None

    def _row(self, view: View, name: str | None) -> Row:
        number = self._random.randrange(1000)
        made: Row = {
            "name": name,
            "n": number,
            "total": Decimal(number) / 4,
            "share": self._random.choice([number / 7, float("inf"), None]),
            "at": START + timedelta(microseconds=number),
            "rank": number,
        }
        return {column.name: made[column.name] for column in view.schema.columns} | _quantized(made, view.schema)

    # The parts of the story

    def begin(self, story: _Story) -> None:
        store = self._open()
        store.switch(story.lineage, iter([Step(story.start)]))
        self._check(story, store, "after a switch")
        store.switch(story.lineage, _never())
        self._check(story, self._open(), "after a switch that was done already")

    def tell(self, story: _Story, *, to_the_end: bool = False) -> None:
        """In pieces; some begin before the position, and are passed over as far as they are known."""
        store, goal = self._open(), len(story.steps) if to_the_end else len(story.steps) // 2
        while (done := self._done(story, store)) < goal:
            first = max(0, done - self._random.randrange(4))
            store.apply(story.steps[first : min(done + 1 + self._random.randrange(6), goal)])
            self._check(story, store, "after steps, some of which it had taken before")
            if self._random.random() < 0.3:
                store = self._open()
                self._check(story, store, "opened anew")

    def interrupt(self, story: _Story) -> None:
        """A switch whose steps end with an error leaves everything as it was. Files are never filled again in the same
        lineage, tables are where changes were compacted.
        """
        store, number = self._open(), story.lineage.number + (self._kept == "files")
        later = replace(story.lineage, number=number, frame=story.lineage.frame + 9_000)
        steps = [replace(step, position=replace(step.position, lineage=number)) for step in story.steps[:2]]
        self._refused(story, lambda: store.switch(later, _broken(steps)), "a switch that was interrupted")

    def refuse(self, story: _Story) -> None:
        """What does not fit is refused, and with it all that came in the same call."""
        store = self._open()
        after = story.steps[self._done(story, store)]
        strange = replace(after, position=replace(after.position, lineage=99))
        self._refused(story, lambda: store.apply([strange]), "a step of another lineage")
        missing = change_of(BAG, [({"name": "nobody", "at": START}, None)])
        unfit = Step(replace(after.position, frame=after.position.frame + 1), (missing,))
        self._refused(story, lambda: store.apply([after, unfit]), "a row that leaves and is not there")

    def kill(self, story: _Story) -> None:
        """Kills who writes while he takes a step: the next but some, at a random moment of it."""
        heard, tell = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                store = self._open()
                for step in story.steps[self._done(story, store) :]:
                    os.write(tell, b".")
                    store.apply([step])
            finally:
                os._exit(0)
        os.close(tell)
        with open(heard, "rb", buffering=0) as steps:
            time.sleep(self._random.uniform(0, self._step_begun(steps)))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        self._check(story, self._open(), "after its process was killed")

    def _step_begun(self, steps: IO[bytes]) -> float:
        """Waits until a step begins; about how long one takes."""
        took = SHORTEST_SECONDS
        steps.read(1)
        for _ in range(self._random.randrange(3)):
            began = time.monotonic()
            steps.read(1)
            took = time.monotonic() - began
        return took

    def switch(self, story: _Story) -> None:
        """To another lineage, whose views have other columns."""
        store, half = self._open(), len(story.steps) // 2
        frame = story.steps[half].position.frame
        moved = replace(story.lineage, frame=frame)
        store.switch(moved, iter(story.steps[: half + 1]))
        self._check(story, store, "after a switch to another lineage")
        self.tell(story, to_the_end=True)

    # What is asked of the store

    def _done(self, story: _Story, store: Store) -> int:
        position = store.position()
        assert position is not None, "the store has forgotten its position"
        return sum(step.position.frame <= position.frame for step in story.steps)

    def _check(self, story: _Story, store: Store, when: str) -> None:
        done = self._done(story, store)
        wanted = story.steps[done - 1].position if done else story.start
        assert store.position() == wanted, f"{when}: the position is {store.position()}, not {wanted}"
        for view, held in story.held[wanted.frame].items():
            found = Counter(map(_text, self._rows(store, view)))
            assert found == held, f"{when}: {view} has {dict(found - held)} too much, lacks {dict(held - found)}"

    def _refused(self, story: _Story, act: Callable[[], None], what: str) -> None:
        before = self._open().position()
        try:
            act()
        except Exception:  # of whichever kind the store's are
            after = self._open()
            assert after.position() == before, f"{what} was refused, but the position went on to {after.position()}"
            self._check(story, after, f"after {what} was refused")
            return
        raise AssertionError(f"{what} was not refused")


def change_of(view: View, pairs: Sequence[tuple[Row | None, Row | None]]) -> Change:
    """Rows that leave and rows that come, as a store is told of them."""
    type_ = pa.struct(list(arrow_schema(view.schema)))
    old, new = zip(*pairs, strict=True)
    return Change(view.name, pa.array(old, type_), pa.array(new, type_))


def _quantized(row: Row, schema: Schema) -> Row:
    return {"total": row["total"].quantize(Decimal("0.01"))} if "total" in schema.names else {}


def _counted(held: Mapping[str, Sequence[Row]]) -> Contents:
    return {view: Counter(map(_text, rows)) for view, rows in held.items()}


def _text(row: Mapping[str, Any]) -> str:
    """The same for equal rows, whichever class the time zone of a time is of."""
    values = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}
    return repr(values)


def _never() -> Iterator[Step]:
    raise AssertionError("a switch that was done already read its steps")
    yield


def _broken(steps: Sequence[Step]) -> Iterator[Step]:
    yield from steps
    raise _Interrupted
