"""Showing: readers get the tables of another generation under the names that they know.

Where a view has the columns that it had, it stays the object that it was: what was granted on it, and what depends on
it, stays. Else it is made anew, with the same grants; what depends on it is in the way, and that is refused.
"""

from collections.abc import Sequence
from typing import Any

from penstock.views.postgres.tables import Table, quoted
from penstock.views.postgres.types import type_name


def show(cursor: Any, before: Sequence[Table], after: Sequence[Table]) -> None:
    """Inside the transaction from which on they count. Fails where a view is being read and its lock is not free."""
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
    """What others may do with the view, and with columns that it still has; nothing, where somebody has dropped it."""
    cursor.execute(GRANTS, {"name": table.name, "columns": list(table.view.schema.names)})
    return [
        f"GRANT {what}{f' ({quoted(column)})' if column else ''} ON {table.name} TO {whom}{' WITH GRANT OPTION' * may}"
        for what, column, whom, may in cursor.fetchall()
    ]


GRANTS = """
SELECT privilege_type, attname::text, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END, is_grantable
FROM (
  SELECT relowner, NULL AS attname, relacl AS acl FROM pg_class WHERE oid = to_regclass(%(name)s)
  UNION ALL
  SELECT relowner, attname, attacl FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
  WHERE pg_class.oid = to_regclass(%(name)s) AND NOT attisdropped AND attname = ANY (%(columns)s)
) granted, aclexplode(acl) WHERE grantee <> relowner
"""
