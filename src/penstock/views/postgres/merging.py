"""Merging: changes of a view go into its table, and every row is checked.

A row that leaves must be there as it is said to be, and a key that comes must be new: if not, `ViewError` names view,
row and frame. The caller's transaction is then to be given up.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from psycopg.errors import UniqueViolation

from penstock.errors import ViewError
from penstock.views.postgres.identities import is_row, sent_columns
from penstock.views.postgres.netting import Bagged, Keyed, Nameless, OtherKey, Part, Unfit, bagged, keyed
from penstock.views.postgres.tables import KEY, ROW, Table, shown
from penstock.views.postgres.wires import Numbers, Wire, copied, fixed, of_bytes
from penstock.views.step import Change
from penstock.views.steps import grouped

ROWS = 50_000
"""Changes that are merged at once."""


def merge(cursor: Any, table: Table, changes: Sequence[tuple[int, Change]], used: set[str]) -> None:
    """Merges changes, each with its frame, in order, into the view's table. `used` are the staging tables that the
    transaction has filled: at its end they are empty again.
    """
    for group in grouped(changes, lambda change: len(change[1]), most=len(changes), held_at_most=ROWS):
        cursor.execute(table.empty if table.stage in used else table.staged)
        used.add(table.stage)
        part = Part.of(table.view, group)
        try:
            (_merge_keyed if table.view.key else _merge_bag)(cursor, table, part)
        except Unfit as unfit:
            raise _refusal(cursor, table, part, unfit) from None


def _merge_keyed(cursor: Any, table: Table, part: Part) -> None:
    net = keyed(part)
    was, is_ = is_row(net.olds), is_row(net.news)
    comes, leaves, changes = (np.count_nonzero(each) for each in (~was, ~is_, was & is_))
    _stage(cursor, table, [fixed(net.keys), fixed(net.olds, was), fixed(net.news, is_)], part.new, net.at)
    cursor.execute("SAVEPOINT before")
    for statement, expected in ((table.delete, leaves), (table.update, changes)):
        if expected:
            cursor.execute(statement)
            if cursor.rowcount != expected:
                _refuse_key(cursor, table.missing, net)
    try:
        if comes:
            cursor.execute(table.insert)
    except UniqueViolation:
        _refuse_key(cursor, table.taken, net)
    cursor.execute("RELEASE before")


def _found(cursor: Any, statement: str) -> Any:
    return cursor.execute(statement).fetchone()


def _refuse_key(cursor: Any, statement: str, net: Keyed) -> None:
    cursor.execute("ROLLBACK TO before")
    found = _found(cursor, statement)
    assert found is not None
    raise Unfit(net.first_of(found[0].bytes))


def _merge_bag(cursor: Any, table: Table, part: Part) -> None:
    net = bagged(part)
    numbers = [fixed(each.astype(">i4")) for each in (net.counts, net.needs)]
    _stage(cursor, table, [fixed(net.rows), *numbers], part.new, net.at)
    leaves = -int(net.counts[net.counts < 0].sum())
    if leaves != net.needs.sum():  # some leave, and come again
        _check_there(cursor, table, net)
    if leaves:
        cursor.execute("SAVEPOINT before")
        cursor.execute(table.take)
        if cursor.rowcount != leaves:
            cursor.execute("ROLLBACK TO before")
            _check_there(cursor, table, net)
        cursor.execute("RELEASE before")
    if (net.counts > 0).any():
        cursor.execute(table.insert)


def _check_there(cursor: Any, table: Table, net: Bagged) -> None:
    if (found := _found(cursor, table.missing)) is not None:
        row = found[0].bytes
        there = _found(cursor, f"SELECT count(*) FROM {table.base} WHERE {ROW} = '{row.hex()}'::uuid")[0]
        raise Unfit(net.first_too_much(row, there))


def _stage(cursor: Any, table: Table, ours: Sequence[Wire], rows: pa.StructArray, at: Numbers) -> None:
    """Copies into the staging table: what identifies the rows, and of those that come the columns."""
    if not len(at):
        return
    whole = len(at) == len(rows) and bool((at == np.arange(len(at))).all())
    chosen = rows if whole else rows.take(pa.array(at, mask=at < 0))
    columns = sent_columns(table.view.schema, chosen)
    far: dict[int, dict[str, int | str]] = defaultdict(dict)
    for number, column in enumerate(columns):
        for row, value in column.far.items():
            far[row][str(number)] = value
    texts = _texts(far, len(at))
    with cursor.copy(table.copy) as copy:
        copy.write(copied([*ours, texts, *(column.stored for column in columns)]))


def _texts(far: dict[int, dict[str, int | str]], count: int) -> Wire:
    if not far:
        return Wire(np.full(count, -1), np.empty(0, np.uint8))
    return of_bytes([json.dumps(far[at]).encode() if at in far else None for at in range(count)])


# What does not fit


def _refusal(cursor: Any, table: Table, part: Part, unfit: Unfit) -> ViewError:
    what, detail = _what(cursor, table, part, unfit)
    return ViewError(
        f'view "{table.view.name}": frame {part.frames[unfit.at]} {what}',
        detail=detail,
        hint=f"The table or the change topic is damaged. Drop the schema {table.schema}: the store fills itself anew.",
    )


def _what(cursor: Any, table: Table, part: Part, unfit: Unfit) -> tuple[str, str]:
    if isinstance(unfit, Nameless):
        return "has a deletion that does not say which row leaves", ""
    old, new = part.old[unfit.at], part.new[unfit.at]
    row = shown(table.view.schema.names, _values(old if old.is_valid else new))
    if not table.view.key:
        return "takes away a row that is not there", f"It is {row}."
    there = _under(cursor, table, part, unfit)
    detail = f"The row is {row}; under its key there is {there}."
    if isinstance(unfit, OtherKey):
        return "replaces a row by one with another key", detail
    if not old.is_valid:
        return "adds a row whose key is there already", detail
    return f"{'replaces' if new.is_valid else 'deletes'} a row that is not there", detail


def _under(cursor: Any, table: Table, part: Part, unfit: Unfit) -> str:
    names = table.view.schema.names
    if unfit.there is not None:
        return "nothing" if unfit.there < 0 else shown(names, _values(part.new[unfit.there]))
    row = part.old[unfit.at : unfit.at + 1] if part.old[unfit.at].is_valid else part.new[unfit.at : unfit.at + 1]
    net = keyed(Part(table.view, pa.nulls(1, row.type), row, part.frames[:1]))
    found = cursor.execute(table.look(KEY).format(net.keys[0].tobytes().hex())).fetchall()
    return " and ".join(shown(names, each) for each in found) or "nothing"


def _values(row: pa.StructScalar) -> list[Any]:
    """Values as they are shown; those that Python does not have as Arrow writes them."""
    found = []
    for value in row.values():
        try:
            found.append(value.as_py())
        except (ValueError, OverflowError):
            found.append(str(value))
    return found
