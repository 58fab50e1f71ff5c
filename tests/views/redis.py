"""Redis for tests of views: a server in each process, and for each test keys of its own."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from penstock.views.redis import rows_in
from services.jars import ServiceError
from services.redis import Server, server_in


def server_for_tests() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="penstock-redis-"))
    try:
        server = server_in(folder, dies_with_us=True)
    except ServiceError as error:
        if os.environ.get("PENSTOCK_SERVICES") == "required":
            raise
        pytest.skip(f"no Redis: {error.primary}")
    server.start()
    yield server
    server.kill()
    shutil.rmtree(folder)


def new_prefix() -> str:
    return f"shop[{uuid4().hex[:8]}]"


def rows_of(server: Server, prefix: str, view: str) -> list[dict[str, Any]]:
    _, _, pieces = rows_in(server.url, prefix, view)
    return [row for piece in pieces for row in pa.RecordBatch.from_struct_array(piece).to_pylist()]
