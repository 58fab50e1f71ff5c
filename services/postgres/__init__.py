"""PostgreSQL, as tests and `make postgres` start it."""

from services.postgres.server import Server, server_in

__all__ = ["Server", "server_in"]
