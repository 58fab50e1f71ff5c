"""Files read back, in the plainest way: whatever a reader of a view's folder finds in it."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from penstock.schema import arrow_schema, parse_schema
from tests.views.shop import Declared, counted


def read(folder: Path, view: str, declared: Declared) -> pa.Table:
    """The rows of a view's files, with the columns that the folders tell."""
    schema = arrow_schema(parse_schema(declared.schema))
    parts = ds.partitioning(pa.schema([schema.field(name) for name in declared.partition_by]), flavor="hive")
    return ds.dataset(folder / "current" / view, schema=schema, partitioning=parts).to_table()


def contents_of(folder: Path, view: str, declared: Declared) -> Counter[str]:
    """How often each row occurs."""
    return counted(read(folder, view, declared).to_pylist())
