"""Indexes are on columns that the view has, and that can be looked for."""

import pytest

from penstock.engine.indexing import index_columns
from penstock.model import pipeline_of
from penstock.schema import parse_schema
from tests.texts import refused

SCHEMA = parse_schema("City STRING, spend DECIMAL(10,2), tags ARRAY<STRING>")
SQL = "CREATE VIEW v WITH (index = '{}') AS SELECT 1;"


def test_columns_are_spelled_as_the_view_spells_them() -> None:
    view = pipeline_of(SQL.format("city; SPEND, city")).view("v")
    assert index_columns(view, SCHEMA) == (("City",), ("spend", "City"))


@pytest.mark.parametrize(("name", "index"), [("unknown", "town"), ("nested", "city, tags")])
def test_columns_that_cannot_be_indexed_are_refused(name: str, index: str) -> None:
    with refused(f"engine/index-{name}"):
        index_columns(pipeline_of(SQL.format(index)).view("v"), SCHEMA)
