"""How the values of a topic are written where that can be chosen: in Kafka, as JSON unless the topic says Avro."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.errors import SchemaError

AVRO = "avro"


@dataclass(frozen=True)
class Avro:
    """Values in Avro's binary encoding.

    Written with `schema`, which is made from the topic's columns where none is given. With `ids` values begin with the
    id of their schema, five bytes as schema registries have them: each id that may come is named with its schema; the
    last is written.
    """

    schema: str | None = None
    ids: tuple[tuple[int, str], ...] = ()

    def __post_init__(self) -> None:
        if self.schema is not None and self.ids:
            raise SchemaError(
                "values in Avro have a schema, or schemas with ids, not both",
                hint="Give schema=... for values that are nothing but Avro, ids=... for those that name their schema.",
            )
        for text in [each for _, each in self.ids] or ([self.schema] if self.schema is not None else []):
            _check(text)


def _check(text: str) -> None:
    try:
        found = json.loads(text)
    except ValueError:
        raise SchemaError("the Avro schema is not JSON", detail=f"It begins with {text[:40]!r}.") from None
    if not isinstance(found, dict) or found.get("type") != "record":
        raise SchemaError("the Avro schema of values is a record", hint='It begins with {"type": "record", ...}.')


def values_json(values: Avro) -> dict[str, Any]:
    return {"format": AVRO, "schema": values.schema, "ids": [list(each) for each in values.ids]}


def values_of(found: Mapping[str, Any]) -> Avro:
    return Avro(found.get("schema"), tuple((number, text) for number, text in found.get("ids", ())))
