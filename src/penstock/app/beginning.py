"""Beginning: a folder gets a small pipeline that works, and a log with its topics, ready for records."""

from pathlib import Path

from penstock.app.place import Place, place_of
from penstock.engine.topics import ensure_sources
from penstock.errors import CommandError
from penstock.log import Log
from penstock.model import load_pipeline

EXAMPLE = """\
-- What comes in. A stream only grows; a table holds the newest row of every key.
CREATE STREAM orders (id BIGINT, customer BIGINT, amount DECIMAL(10,2));

CREATE TABLE customers (id BIGINT PRIMARY KEY, name STRING, city STRING);

-- What is kept right as records come: any number of views, over relations and over each other.
CREATE VIEW spend_by_city AS
  SELECT city, count(*) AS orders, sum(amount) AS spend
  FROM orders JOIN customers ON customer = customers.id
  GROUP BY city;
"""


def begin(folder: Path) -> Place:
    """Writes the example into the folder, which may be there, but without a pipeline."""
    there = sorted(each.name for each in folder.glob("*") if each.suffix in (".sql", ".py")) if folder.is_dir() else []
    if there:
        raise CommandError(
            f'"{folder}" holds a pipeline already', detail=f"It has {', '.join(there)}.", hint=f"penstock run {folder}"
        )
    file = folder / "pipeline.sql"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(EXAMPLE)
    except OSError as error:
        raise CommandError(f'"{file}" cannot be written', detail=f"{error.strerror}.") from None
    place, pipeline = place_of(folder), load_pipeline(folder)
    with Log.open(place.log(pipeline)) as log:
        ensure_sources(log, pipeline)
    return place
