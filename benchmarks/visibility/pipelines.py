"""The pipelines whose latency is measured; their views are kept as tables, as they are unless one says otherwise."""

import numpy as np
import pyarrow as pa

from benchmarks.visibility.producer import KEYS
from penstock.log import Log

EVENTS = "CREATE STREAM events (k BIGINT, v BIGINT, sent BIGINT);"
CUSTOMERS = "CREATE TABLE customers (id BIGINT PRIMARY KEY, city BIGINT);"
CITIES = 500
PIPELINES = {
    "filter": f"{EVENTS} CREATE VIEW few AS SELECT k, v, sent FROM events WHERE v % 10 = 0;",
    "count": f"{EVENTS} CREATE VIEW counts AS SELECT k, count(*) AS n, sum(v) AS total FROM events GROUP BY k;",
    "join": f"""{EVENTS} {CUSTOMERS} CREATE VIEW spend AS
        SELECT city, count(*) AS n, sum(v) AS total FROM events JOIN customers ON k = id GROUP BY city;""",
    "twenty": EVENTS
    + "".join(
        f"CREATE VIEW v{i} AS SELECT k % {100 + i} AS k, count(*) AS n, sum(v) AS total FROM events GROUP BY 1;"
        for i in range(20)
    ),
}


def prepare(name: str, log: Log) -> None:
    """What has to be in the log before the events come."""
    if name == "join":
        ids = np.arange(KEYS)
        log.append("customers", pa.record_batch({"id": ids, "city": ids % CITIES}))
