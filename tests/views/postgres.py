"""PostgreSQL for tests of views: a server in each process, and for each test a schema of its own."""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from penstock.errors import ViewError
from penstock.views.postgres import rows_in
from services.jars import ServiceError
from services.postgres import Server, server_in
from tests.views.shop import VIEWS, Shop, counted, folded

QUICK = {"fsync": "off", "full_page_writes": "off"}
"""A server that is killed leaves to the operating system what it has written."""


def server_for_tests() -> Iterator[Server]:
    """In a folder that a server run by root, as nobody, can reach."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="penstock-postgres-", dir=memory if memory.is_dir() else None))
    folder.chmod(0o755)
    try:
        server = replace(server_in(folder, dies_with_us=True), settings=QUICK)
    except ServiceError as error:
        if os.environ.get("PENSTOCK_SERVICES") == "required":
            raise
        pytest.skip(f"no PostgreSQL: {error.primary}")
    server.start()
    yield server
    server.kill()
    shutil.rmtree(folder)


def new_schema() -> str:
    return f"shop-{uuid4().hex[:12]}"


def contents_in(url: str, schema: str, view: str) -> Counter[str]:
    _, _, pieces = rows_in(url, schema, view)
    return counted(row for piece in pieces for row in pa.RecordBatch.from_struct_array(piece).to_pylist())


def asked(server: Server, statement: str) -> list[tuple[Any, ...]]:
    with server.connection() as connection:
        return list(connection.execute(statement).fetchall())


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(ViewError) as error:
        act()
    assert ":penstock@" not in str(error.value)
    return str(error.value)


def assert_right(postgres: Server, schema: str, shop: Shop) -> None:
    for view in VIEWS:
        assert contents_in(postgres.url(), schema, view) == folded(shop.log, shop.topic(view))
