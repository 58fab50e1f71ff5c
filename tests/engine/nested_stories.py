"""Stories of pipelines whose views are random nested queries: what is appended, and where they are started again."""

from collections.abc import Callable
from random import Random
from typing import Any

from penstock.log import Record
from tests.engine.conftest import Bench
from tests.engine.nested import RELATIONS, Nest

VIEWS = 9


class Records:
    """Frames of changes, in which rows come, change and go."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._bag: list[dict[str, Any]] = []
        self._ids: set[int] = set()

    def frame(self) -> dict[str, list[Any]]:
        several = range(self._random.randint(1, 4))
        return {"s": [self._row() for _ in several], "d": [self._of_table() for _ in several], "g": [*self._of_bag()]}

    def _row(self) -> dict[str, Any]:
        choice = self._random.choice
        return {"k": choice([None, 1, 2, 3]), "v": choice([None, 0, 1, 2, 3, 5]), "t": choice([None, "a", "b", "ab"])}

    def _of_table(self) -> Any:
        number = self._random.randint(1, 6)
        if number in self._ids and self._random.random() < 0.3:
            self._ids.remove(number)
            return Record({"id": number}, deleted=True)
        self._ids.add(number)
        return {"id": number, **self._row()}

    def _of_bag(self) -> list[Any]:
        gone = [self._bag.pop()] if self._bag and self._random.random() < 0.5 else []
        come = [self._row()]
        self._bag = self._random.sample(self._bag + come, len(self._bag) + 1)
        return [*come, *(Record(row, deleted=True) for row in gone)]


def tell(bench: Callable[..., Bench], seed: int, story: int = 0) -> None:
    """One of the stories that the seed gives, one after the other."""
    random = Random(seed)
    nest = Nest(random)
    queries, records = [nest.story(VIEWS) for _ in range(story + 1)][-1], Records(random)
    sql = RELATIONS + "".join(f"CREATE VIEW v{i} AS\n  {query};\n" for i, query in enumerate(queries))
    try:
        kept = bench(sql, max_records_per_batch=random.choice([1, 8]))
        for restart in (False, True):
            if restart:
                kept.start(max_records_per_batch=8)
            for _ in range(3):
                kept.append(records.frame())
            kept.drain()
            kept.check()
    except BaseException as error:
        error.add_note(f"seed {seed}, story {story}\n{sql}")
        raise
