"""Random stories of a pipeline: its views, what is appended frame by frame, where it is stopped and started again, how
much it reads at once, in how many partitions.

A story is a function of a seed, so that many parts of it vary even in the first few.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st

from penstock.log import Record
from tests.engine.queries import SHAPES, Author
from tests.engine.rows import RELATIONS, Row, payload, row_of_bag, row_under_one_column, row_under_two_columns

Frame = Mapping[str, Sequence[Row | Record]]


@dataclass(frozen=True)
class Chapter:
    """What is appended while the pipeline stands still, and the most records of a batch when it then runs."""

    frames: tuple[Frame, ...]
    most: int


@dataclass(frozen=True, repr=False)
class Story:
    sql: str
    partitions: int
    chapters: tuple[Chapter, ...]
    tags: frozenset[str]


def story(random: Random) -> Story:
    """One view of every shape, declared in any order."""
    author, records = Author(random), Records(random)
    for shape in [*random.sample(SHAPES, len(SHAPES)), "over"]:
        author.write(shape)
    texts = [f"CREATE VIEW {name}{_options(random)} AS\n  {query.sql};\n" for name, query in author.views]
    random.shuffle(texts)
    chapters = tuple(_chapter(random, records) for _ in range(random.randint(2, 3)))
    tags = frozenset(records.tags).union(*(query.tags for _, query in author.views))
    return Story(RELATIONS + "".join(texts), random.choice([1, 1, 3]), chapters, tags)


stories = st.randoms(use_true_random=True).map(story)


def _options(random: Random) -> str:
    return random.choice(["", "", "", " WITH (store = 'topic')"])


def _chapter(random: Random, records: "Records") -> Chapter:
    frames = tuple(frame for _ in range(random.randint(1, 4)) if (frame := records.frame()))
    return Chapter(frames, random.choice([1, 12, 25, 100]))


class Records:
    """The records of one frame after the other; deletions mostly of what is there."""

    def __init__(self, random: Random) -> None:
        self.tags: set[str] = set()
        self._random = random
        self._bag: list[Row] = []
        self._keyed: dict[str, dict[Any, Row]] = {"d": {}, "e": {}}

    def frame(self) -> Frame:
        found: dict[str, Sequence[Row | Record]] = {
            "s": [payload(self._random) for _ in self._some(5)],
            "d": [self._change("d", ("id",), row_under_one_column(self._random)) for _ in self._some(4)],
            "e": [self._change("e", ("k", "t"), row_under_two_columns(self._random)) for _ in self._some(4)],
            "g": self._bag_records(),
        }
        return {topic: rows for topic, rows in found.items() if rows}

    def _some(self, most: int) -> range:
        return range(self._random.randint(0, most))

    def _change(self, topic: str, key: tuple[str, ...], row: Row) -> Row | Record:
        """One in three deletes, now and then what is not there; the others add or replace."""
        held, under = self._keyed[topic], tuple(row[name] for name in key)
        if self._random.random() < 0.65:
            self.tags.add("update" if under in held else "insert")
            held[under] = row
            return row
        if held and self._random.random() < 0.7:
            under = self._random.choice(sorted(held))
        self.tags.add("deletion" if held.pop(under, None) else "deletion of a key that is not there")
        return Record(dict(zip(key, under, strict=True)), deleted=True)

    def _bag_records(self) -> list[Row | Record]:
        """Rows that come, some of them twice, and rows that leave, sometimes before they come."""
        comes = [row_of_bag(self._random) for _ in self._some(3)]
        comes += comes[: self._random.randint(0, 1)]
        self._bag += comes
        leaves = [Record(self._leaving(), deleted=True) for _ in self._some(3)]
        return [*leaves, *comes] if self._random.random() < 0.3 else [*comes, *leaves]

    def _leaving(self) -> Row:
        if not self._bag or self._random.random() < 0.2:
            self.tags.add("deletion that finds nothing")
            return row_of_bag(self._random)
        self.tags.add("deletion from the bag")
        return self._bag.pop(self._random.randrange(len(self._bag)))
