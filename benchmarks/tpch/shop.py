"""The tables of TPC-H in a log, and its queries as views over them."""

from pathlib import Path

import pyarrow as pa

from benchmarks.tpch.data import KEYS, SCHEMAS, Data, Refresh
from penstock.log import Log, Record

QUERIES = {path.stem: path.read_text() for path in sorted((Path(__file__).parent / "queries").glob("*.sql"))}
"""By name, q01 to q22."""
FRAME = 250_000
TABLES = "".join(
    f"CREATE TABLE {name} ({schema}, PRIMARY KEY ({', '.join(KEYS[name])}));\n" for name, schema in SCHEMAS.items()
)


def pipeline_text(names: list[str], store: str = "table") -> str:
    """The declarations of all tables, and of these queries as views."""
    views = (f"CREATE VIEW {name} WITH (store = '{store}') AS\n{QUERIES[name].strip()};\n" for name in names)
    return TABLES + "".join(views)


def load(log: Log, data: Data) -> dict[str, pa.RecordBatch]:
    """All tables go into the log, in frames that a batch can hold; what went in."""
    tables = data.tables()
    present = {topic.name for topic in log.topics()}
    for name, rows in tables.items():
        if name not in present:
            log.create_topic(name, SCHEMAS[name], key=KEYS[name])
        for start in range(0, rows.num_rows, FRAME):
            log.append(name, rows.slice(start, FRAME))
    return tables


def change(log: Log, refresh: Refresh) -> int:
    """One round of refresh, as one transaction; the frame that it is."""
    return log.append_all({name: _records(refresh, name) for name in {*refresh.rows, *refresh.gone}}).frame


def _records(refresh: Refresh, name: str) -> list[Record]:
    gone = [Record(key, deleted=True) for key in refresh.gone.get(name, ())]
    return gone + [Record(row) for row in refresh.rows[name].to_pylist()]
