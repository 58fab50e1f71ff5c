"""Redis, as tests and `make redis` start it."""

from services.redis.server import Server, server_in

__all__ = ["Server", "server_in"]
