"""Redis, as tests start it."""

from services.redis.server import Server, server_in

__all__ = ["Server", "server_in"]
