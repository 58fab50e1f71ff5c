"""The catalog as of the mark, kept at hand: only frames that are new are taken in.

Not safe for several threads: its owner guards it.
"""

from collections.abc import Sequence

from penstock.log.catalog import Catalog
from penstock.log.frame import Header
from penstock.log.journal import Journal
from penstock.log.mark import Mark


class Known:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._catalog: Catalog | None = None
        self._mark: Mark | None = None

    def forget(self) -> None:
        self._catalog = None

    def at(self, mark: Mark) -> Catalog:
        """The catalog with all frames up to the mark taken in. After a cut it is read anew: frames that were taken in
        may be gone.
        """
        last = self._mark
        if self._catalog is None or last is None or (last.stretch, last.cut) != (mark.stretch, mark.cut):
            self._catalog = self._journal.catalog_after(mark.stretch)
        elif last != mark:
            for found in self._journal.stretch(mark.stretch).frames_from(self._catalog.next_frame):
                self._catalog.apply(found.header)
        self._catalog.next_frame = max(self._catalog.next_frame, mark.next_frame)
        self._mark = mark
        return self._catalog

    def move(self, before: Mark, after: Mark, headers: Sequence[Header]) -> None:
        """Takes in the frames between two marks from whoever wrote them, so that they need not be read."""
        if self._catalog is None or self._mark != before:
            return
        for header in headers:
            if header.frame >= self._catalog.next_frame:
                self._catalog.apply(header)
        self._mark = after
