"""Reading: the rows of a view in Redis as Arrow. Rows that change while they are read may be of two moments."""

import json

import pyarrow as pa
import redis

from penstock.views.redis.rows import ROW, json_row, struct_of
from penstock.views.redis.store import read_views, told
from penstock.views.step import View, find_view


def rows_in(url: str, prefix: str, view: str) -> tuple[View, pa.StructArray]:
    with told(url), redis.Redis.from_url(url) as client:
        found = find_view(read_views(client, prefix), view)
        name = f"{prefix}:{found.name}".encode()
        if not found.key:
            counted = client.hgetall(name).items()
            return found, struct_of(found, [json.loads(text) for text, n in counted for _ in range(int(n))])
        pipe = client.pipeline()
        for key in client.smembers(name):
            pipe.hgetall(name + b":" + key)
        hashes = [each for each in pipe.execute() if each.get(ROW.encode())]
        return found, struct_of(found, [json_row(found, each) for each in hashes])
