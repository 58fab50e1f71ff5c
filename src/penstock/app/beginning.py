"""Beginning: a folder gets a small pipeline that works, and a log with its topics, ready for records.

The folder is new or empty. Where anything is refused, nothing has been made.
"""

from pathlib import Path

from penstock.app.place import HOME, Place, place_of
from penstock.engine.topics import ensure_sources
from penstock.errors import CommandError
from penstock.log import Log
from penstock.model import Pipeline, pipeline_of

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
ELSEWHERE = """\
-- Where the records are.
SET log = '{log}';

"""
MOST_NAMES = 3


def begin(folder: Path, log: Path | None = None) -> Place:
    """Writes the example into the folder; its records are in a log of its own, or in the one that is named."""
    _check_free(folder)
    place, example = place_of(folder), pipeline_of(EXAMPLE, name=folder.resolve().name)
    if log is None:
        _write(place, EXAMPLE)
        _make_topics(place.home / "log", example)
    else:
        _make_topics(log, example)  # what that log refuses, it refuses before there is a folder
        _write(place, ELSEWHERE.format(log=_text(log.resolve())) + EXAMPLE)
    return place


def _make_topics(path: Path, pipeline: Pipeline) -> None:
    with Log.open(path) as log:
        ensure_sources(log, pipeline)


def _write(place: Place, text: str) -> None:
    file = place.folder / "pipeline.sql"
    try:
        place.home.mkdir(parents=True)
        file.write_text(text)
    except OSError as error:
        raise CommandError(f'"{file}" cannot be written', detail=f"{error.strerror}.") from None


def _text(path: Path) -> str:
    """As a text in SQL has it."""
    return str(path).replace("\\", "\\\\").replace("'", "\\'")


def _check_free(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise CommandError(f'"{folder}" is a file', hint="Name a folder that is new or empty.")
    there = sorted(path.name for path in folder.glob("*") if path.name[0] != "." or path.name == HOME)
    if files := [name for name in there if name.endswith((".sql", ".py"))]:
        raise CommandError(
            f'"{folder}" holds a pipeline already',
            detail=f"It has {_named(files)}.",
            hint=f"penstock run {place_of(folder)}",
        )
    if "identity.json" in there and "journal" in there:
        raise CommandError(
            f'"{folder}" is a log',
            detail="A pipeline has a folder of its own, and can read a log elsewhere.",
            hint=f"penstock init DIR --log {folder}",
        )
    if there:
        raise CommandError(
            f'"{folder}" is not empty', detail=f"It has {_named(there)}.", hint="Name a folder that is new or empty."
        )


def _named(names: list[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
