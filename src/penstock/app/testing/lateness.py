"""Late rows: what came too late for a view, as rows of the streams that it came from.

Several streams may have rows that are late for one view. A case says the rows, not their streams: each is taken for a
row of the first stream that has such a late row, or else of the first whose columns it fits.
"""

import json
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from penstock.app.testing.case import Row
from penstock.app.testing.comparing import Late, row_of
from penstock.app.testing.values import Misfit, comparable
from penstock.engine.timing import retains
from penstock.model import Pipeline, Stream
from penstock.schema import Array, Map, Scalar, Schema, Struct, Type


def late_of(pipeline: Pipeline, found: Iterable[tuple[str, str]]) -> list[Late]:
    """What was found, relation and JSON, by relation: streams that have a time, and where corrections may come too late
    also the others.
    """
    timed = [each for each in pipeline.relations if isinstance(each, Stream) and each.event_time]
    others = [each for each in pipeline.relations if each not in timed] if retains(pipeline) else []
    made = {each.name: Late(each.name, each.schema, Counter()) for each in [*timed, *others]}
    for stream, text in found:
        late = made[stream]
        late.rows[_from_json(late.schema, text)] += 1
    return list(made.values())


def shared_out(late: Sequence[Late], rows: Iterable[Row]) -> Iterator[tuple[Late, Counter[Row]]]:
    """The rows that a case wants, by stream."""
    left = [each.rows.copy() for each in late]
    want: list[Counter[Row]] = [Counter() for _ in late]
    for row in rows:
        fits = _fits(late, row)
        at, meant = next(((at, meant) for at, meant in fits if left[at][meant] > 0), fits[0])
        left[at][meant] -= 1
        want[at][meant] += 1
    return zip(late, want, strict=True)


def _fits(late: Sequence[Late], row: Row) -> list[tuple[int, Row]]:
    """The row as each stream has it whose columns it fits."""
    fits, misfits = [], []
    for at, each in enumerate(late):
        try:
            fits.append((at, _counted(each.schema, row)))
        except Misfit as misfit:
            misfits.append(misfit)
    if not fits:
        raise misfits[0] if misfits else Misfit("no stream has an event time: no row is late")
    return fits


def _counted(schema: Schema, row: Sequence[Any]) -> Row:
    return tuple(comparable(value) for value in row_of(schema, row))


def _from_json(schema: Schema, text: str) -> Row:
    values = json.loads(text, parse_float=Decimal)
    return _counted(schema, [_written(each.type, values[each.name]) for each in schema.columns])


def _written(type_: Type, value: Any) -> Any:
    """A value of Spark's JSON as a case would write it: binary values are base64 there, and hexadecimal here."""
    if value is None:
        return None
    match type_:
        case Scalar("BINARY"):
            return b64decode(value)
        case Array(element):
            return [_written(element, each) for each in value]
        case Map(_, item):
            return {key: _written(item, each) for key, each in value.items()}
        case Struct(fields):
            return {each.name: _written(each.type, value[each.name]) for each in fields}
        case _:
            return value
