"""A view that was read from a server, as a reader: a copy of its rows in memory, which can be asked in the ways of
`ViewReader`.
"""

from collections.abc import Iterable
from uuid import uuid4

import pyarrow as pa

from penstock.views.reading import ViewReader
from penstock.views.sqlite import SqliteStore
from penstock.views.step import Change, Lineage, Position, Step, View


def copied(view: View, position: Position, pieces: Iterable[pa.StructArray]) -> ViewReader:
    path = f"file:/penstock-{uuid4().hex}?vfs=memdb"
    with SqliteStore(path) as store:
        changes = (Change(view.name, pa.nulls(len(each), each.type), each) for each in pieces)
        steps = [*(Step(position, (change,)) for change in changes), Step(position)]
        store.switch(Lineage("copy", position.lineage, position.frame, (view,)), steps)
        return ViewReader(path)  # with the last connection to it the memory goes
