"""Reading: the views under a prefix in Redis as Arrow, each with the position that it had.

A view is read whole, and read again if the store went on meanwhile: position and rows are of one moment. `reader_of`
lets it be asked in the ways of `ViewReader`. For single rows ask Redis itself.
"""

import json
from typing import Any

import pyarrow as pa

from penstock.errors import ViewError, without_secrets
from penstock.views.copied import copied
from penstock.views.reading import ViewReader
from penstock.views.redis.rows import ROW, json_row, struct_of
from penstock.views.redis.store import connected, read_position, read_views, told
from penstock.views.step import Position, View, find_view

TRIES = 20
AT_ONCE = 10_000


def position_in(url: str, prefix: str) -> Position | None:
    """How far the store has come."""
    with told(url), connected(url) as client:
        return read_position(client, prefix)


def rows_in(url: str, prefix: str, view: str) -> tuple[View, Position, list[pa.StructArray]]:
    """The view's rows, in pieces, and the position at which it held them."""
    with told(url), connected(url) as client:
        for _ in range(TRIES):
            position, found = read_position(client, prefix), find_view(read_views(client, prefix), view)
            rows = _rows(client, f"{prefix}:{found.name}".encode(), found)
            if position is not None and position == read_position(client, prefix):
                return found, position, rows
    raise ViewError(
        f'view "{view}" in "{without_secrets(url)}" cannot be read',
        detail=f"It has changed {TRIES} times while it was read.",
        hint="Try again when less comes in, or ask Redis for the rows that you need.",
    )


def reader_of(url: str, prefix: str, view: str) -> ViewReader:
    """A reader of one view, as it is now, in memory."""
    return copied(*rows_in(url, prefix, view))


def _rows(client: Any, name: bytes, view: View) -> list[pa.StructArray]:
    if not view.key:
        counted = client.hgetall(name).items()
        return [struct_of(view, [json.loads(text) for text, n in counted for _ in range(int(n))])]
    keys, pieces = list(client.smembers(name)), []
    for first in range(0, len(keys), AT_ONCE):
        pipe = client.pipeline(transaction=False)
        for key in keys[first : first + AT_ONCE]:
            pipe.hgetall(name + b":" + key)
        hashes = [each for each in pipe.execute() if each.get(ROW.encode())]
        pieces.append(struct_of(view, [json_row(view, each) for each in hashes]))
    return pieces
