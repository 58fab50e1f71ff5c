"""The oracle: any batches, any cuts, any resets; the store and the changes equal what the topics add up to."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from penstock.log import Limits, Log
from penstock.views import SqliteStore, ViewReader, catch_up, changes
from tests.effort import examples
from tests.views.shop import VIEWS, Shop, Story, counted, folded

ACTS = st.lists(st.sampled_from(["batches", "catch up", "begin", "announce", "seal", "reopen"]), max_size=14)


class Run:
    """One run of the story: the lineages that exist, and the store that follows."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.log = Log.open(folder / "log", limits=Limits(stretch_frames=9))
        self.path = folder / "views.db"
        self.store = SqliteStore(self.path)
        self._seed = seed
        self._lineages: list[tuple[Shop, Story]] = []
        self.act("begin")
        self.act("announce")

    def act(self, act: str) -> None:
        match act:
            case "begin":
                shop = Shop(self.log, lineage=len(self._lineages) + 1)
                self._lineages.append((shop, Story(shop, self._seed + len(self._lineages))))
            case "batches":
                for _, story in self._lineages[-2:]:
                    story.go_on(3)
            case "announce":
                self._lineages[-1][0].announce()
            case "catch up":
                catch_up(self.log, "shop", self.store, together=2)
                self.check()
            case "seal":
                self.log.seal()
            case "reopen":
                self.store.close()
                self.store = SqliteStore(self.path)

    def check(self) -> None:
        position = self.store.position()
        assert position is not None
        with ViewReader(self.path) as reader:
            for view in VIEWS:
                right = folded(self.log, f"shop.{position.lineage}.{view}", until=position.frame)
                assert counted(reader.rows(view)) == right
                added: Counter[str] = Counter()
                for change in changes(self.log, "shop", view):
                    added[repr(change.row)] += change.weight
                assert +added == right
                assert min(added.values(), default=0) >= 0

    def close(self) -> None:
        self.act("catch up")
        self.store.close()
        self.log.close()


@given(ACTS, st.integers(0, 1000))
@examples(15)
def test_store_and_changes_equal_what_the_topics_add_up_to(acts: list[str], seed: int) -> None:
    with TemporaryDirectory() as folder:
        run = Run(Path(folder), seed)
        for act in acts:
            run.act(act)
        run.close()
