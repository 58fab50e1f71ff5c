"""Views in Redis: a hash for every row, found by its key. Needs the extra `redis`."""

from penstock.errors import ViewError

try:
    from penstock.views.redis.reading import position_in, reader_of, rows_in
    from penstock.views.redis.store import RedisStore
except ModuleNotFoundError as error:
    if error.name != "redis":
        raise
    raise ViewError(
        "Redis' client is not installed", detail="There is no module redis.", hint="pip install 'penstock[redis]'"
    ) from error

__all__ = ["RedisStore", "position_in", "reader_of", "rows_in"]
