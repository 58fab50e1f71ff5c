"""Conditions: SQL text from outside, let at one view's columns and nothing else.

A condition is one expression of SQLite over the view's columns. SQLite itself says what a statement would touch before
it runs (its authorizer): other tables, subqueries, settings, files and functions that are not on the list are refused
with the reason. That the text is one expression, and not the end of ours and the beginning of another, follows from
its being valid inside one pair of brackets and inside two.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from penstock.errors import ViewError, did_you_mean
from penstock.views.costly import LARGEST
from penstock.views.step import View
from penstock.views.tables import quoted

LONGEST = 10_000
NAMES = """
    -> ->> abs ceil ceiling char coalesce concat concat_ws date datetime floor glob hex ifnull iif instr
    json_array_length json_extract json_type julianday length like lower ltrim max min mod nullif power replace
    round rtrim sign sqrt strftime substr substring time timediff trim trunc typeof unicode unixepoch upper
"""
FUNCTIONS = frozenset(NAMES.split())


class Authorizer:
    """Lets one SELECT of a view pass; `reason` says what the condition does that is refused."""

    def __init__(self, view: View) -> None:
        self._table = view.name
        self._columns = frozenset((*view.schema.names, "ROWID", ""))
        self._selects = 0
        self.reason = ""

    def __call__(self, action: int, one: str | None, two: str | None, _database: str | None, _inner: str | None) -> int:
        self.reason = self.reason or self._refusal(action, one or "", two or "")
        return apsw.SQLITE_DENY if self.reason else apsw.SQLITE_OK

    def _refusal(self, action: int, one: str, two: str) -> str:
        match action:
            case apsw.SQLITE_SELECT:
                self._selects += 1
                return "" if self._selects == 1 else "has a query of its own"
            case apsw.SQLITE_READ:
                return "" if one == self._table and two in self._columns else f'reads "{one}.{two}"'
            case apsw.SQLITE_FUNCTION:
                return "" if two.lower() in FUNCTIONS else f"calls the function {two}"
            case _:
                return "does something else than compare values"


@contextmanager
def only(connection: apsw.Connection, view: View, condition: str) -> Iterator[None]:
    """Inside, the connection can do nothing but one SELECT of the view."""
    guard = Authorizer(view)
    connection.authorizer = guard
    most = connection.limit(apsw.SQLITE_LIMIT_LENGTH, LARGEST) if condition else None
    try:
        yield
    except (apsw.AuthError, apsw.SQLError, apsw.BindingsError, apsw.TooBigError, UnicodeDecodeError) as error:
        if guard.reason:
            raise _refused(condition, f"It {guard.reason}.", _allowed(view)) from None
        raise _refused(condition, f"{error}.", _hint(str(error), view)) from None
    finally:
        connection.authorizer = None
        if most is not None:
            connection.limit(apsw.SQLITE_LIMIT_LENGTH, most)


def check(connection: apsw.Connection, view: View, condition: str) -> None:
    """Refuses what is not a condition on the view's columns."""
    if len(condition) > LONGEST:
        raise _refused(condition[:60] + "...", f"It has {len(condition)} characters.", f"At most {LONGEST}.")
    with only(connection, view, condition):
        connection.execute(f"SELECT (\n{condition}\n) FROM {quoted(view.name)} LIMIT 0").fetchall()


def bracketed(condition: str) -> str:
    """The condition for the WHERE of a statement, after `check`."""
    return f"((\n{condition}\n))"


def _refused(condition: str, detail: str, hint: str) -> ViewError:
    return ViewError(f"this is not a condition that can be used: {condition}", detail=detail, hint=hint)


def _allowed(view: View) -> str:
    return f"Compare the columns {', '.join(view.schema.names)} with values; functions of SQLite: {_functions()}."


def _functions() -> str:
    return ", ".join(sorted(name for name in FUNCTIONS if name[0].isalpha()))


def _hint(message: str, view: View) -> str:
    if message.startswith("no such column"):
        name = message.split(":")[-1].split("-")[0].strip().strip('"')
        known = f"The columns are {', '.join(view.schema.names)}; texts stand in single quotes: 'Bern'."
        return did_you_mean(name, view.schema.names, otherwise=known)
    return "Write an expression of SQLite: city = 'Bern' AND spend > 100."
