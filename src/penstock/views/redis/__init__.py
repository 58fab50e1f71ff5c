"""Views in Redis: a hash for every row, found by its key."""

from penstock.views.redis.reading import rows_in
from penstock.views.redis.store import RedisStore

__all__ = ["RedisStore", "rows_in"]
