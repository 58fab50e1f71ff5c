"""Views in PostgreSQL, where any program can ask for them. Needs the extra `postgres`."""

from penstock.errors import ViewError

try:
    from penstock.views.postgres.reading import position_in, reader_of, rows_in, views_in
    from penstock.views.postgres.store import PostgresStore
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "psycopg":
        raise
    raise ViewError(
        "PostgreSQL's client is not installed",
        detail="There is no module psycopg.",
        hint="pip install 'penstock[postgres]'",
    ) from error

__all__ = ["PostgresStore", "position_in", "reader_of", "rows_in", "views_in"]
