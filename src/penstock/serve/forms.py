"""Forms: rows as JSON, CSV or Arrow, and which of them was asked for."""

import csv
import json
from collections.abc import Callable
from functools import lru_cache
from io import StringIO
from typing import Any, Literal

import pyarrow as pa

from penstock.errors import ServeError
from penstock.schema import Schema
from penstock.text import csv_text, writer
from penstock.views.query import Answer
from penstock.views.step import Row

Form = Literal["json", "csv", "arrow"]
TYPES: dict[Form, str] = {"json": "application/json", "csv": "text/csv", "arrow": "application/vnd.apache.arrow.stream"}
ANY: dict[str, Form] = {"*/*": "json", "application/*": "json", "text/*": "csv"}


def form_of(given: Form | None, accept: str | None) -> Form:
    """As the address says, else as the header `Accept` does, the best of what it lists; JSON if it says nothing."""
    if given is not None or not accept:
        return given or "json"
    known = {kind: form for form, kind in TYPES.items()} | ANY
    for kind in sorted(accept.split(","), key=_quality, reverse=True):
        form = known.get(kind.partition(";")[0].strip().lower())
        if form is not None and _quality(kind) > 0:
            return form
    raise ServeError(
        f'nothing of "{accept[:80]}" can be given', detail=f"There are {', '.join(TYPES.values())}.", status=406
    )


def _quality(kind: str) -> float:
    for part in kind.split(";")[1:]:
        name, _, value = part.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0
    return 1


@lru_cache(maxsize=256)
def fields(schema: Schema) -> Callable[[Row], dict[str, Any]]:
    """The function that makes JSON values of a row's."""
    writers = [(column.name, writer(column.type)) for column in schema.columns]
    return lambda row: {name: write(row[name]) for name, write in writers}


def json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def csv_of(answer: Answer) -> bytes:
    out = StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(answer.view.schema.names)
    show = fields(answer.view.schema)
    table.writerows([csv_text(value) for value in show(row).values()] for row in answer)
    return out.getvalue().encode(errors="backslashreplace")


def arrow_of(answer: Answer) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, answer.table.schema) as stream:
        stream.write_table(answer.table)
    return bytes(out.getvalue())
