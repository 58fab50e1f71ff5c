"""Views in PostgreSQL, where any program can ask for them."""

from penstock.views.postgres.reading import position_in, reader_of, rows_in, views_in
from penstock.views.postgres.store import PostgresStore

__all__ = ["PostgresStore", "position_in", "reader_of", "rows_in", "views_in"]
