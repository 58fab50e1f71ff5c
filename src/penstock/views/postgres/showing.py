"""Showing: readers get the tables of another generation under the names that they know.

Where a view has the columns that it had, it stays the object that it was: what was granted on it, and what depends on
it, stays. Else it is made anew, with the same grants; what depends on it is in the way, and that is refused.
"""

from collections.abc import Sequence
from typing import Any

from penstock.views.postgres.tables import Table
from penstock.views.postgres.types import type_name


def show(cursor: Any, before: Sequence[Table], after: Sequence[Table]) -> None:
    """Inside the transaction in which they were filled."""
    shown = {table.name: table for table in before}
    for gone in shown.keys() - {table.name for table in after}:
        cursor.execute(f"DROP VIEW IF EXISTS {gone}")
    for table in after:
        old = shown.get(table.name)
        if old is not None and _columns(table)[: len(_columns(old))] == _columns(old):
            cursor.execute(f"CREATE OR REPLACE VIEW {table.name} AS {table.select}")
            continue
        grants = _grants(cursor, table) if old is not None else []
        if old is not None:
            cursor.execute(f"DROP VIEW IF EXISTS {table.name}")
        cursor.execute(f"CREATE VIEW {table.name} AS {table.select}")
        for grant in grants:
            cursor.execute(grant)


def _columns(table: Table) -> list[tuple[str, str]]:
    return [(column.name, type_name(column.type)) for column in table.view.schema.columns]


def _grants(cursor: Any, table: Table) -> list[str]:
    """What others may do with the view; no longer, where somebody has dropped it."""
    cursor.execute(
        "SELECT privilege_type, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END "
        "FROM pg_class, aclexplode(relacl) WHERE oid = to_regclass(%s) AND grantee <> relowner",
        [table.name],
    )
    return [f"GRANT {what} ON {table.name} TO {whom}" for what, whom in cursor.fetchall()]
