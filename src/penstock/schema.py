"""Schemas: named columns with Spark SQL's types, and their Arrow form.

A `Schema` is a pure value, written and read as Spark SQL writes it (`id BIGINT NOT NULL, tags ARRAY<STRING>`). Column
names are unique regardless of case, as in Spark. The Arrow form has every field nullable: a record that
marks a deletion holds only its key.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar, assert_never

import pyarrow as pa

from penstock.errors import SchemaError, did_you_mean

SCALARS: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}
SYNONYMS = {
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "SHORT": "SMALLINT",
    "BYTE": "TINYINT",
    "REAL": "FLOAT",
    "TIMESTAMP_LTZ": "TIMESTAMP",
}
RESERVED = (
    "_partition",
    "_offset",
    "_appended_at",
    "_place",
    "_watermark",
    "_deleted",
    "_replaces",
    "_headers",
    "_bad",
    "_key",
    "_value",
)


@dataclass(frozen=True)
class Scalar:
    name: str


@dataclass(frozen=True)
class Decimal:
    precision: int
    scale: int


@dataclass(frozen=True)
class Array:
    element: "Type"


@dataclass(frozen=True)
class Map:
    key: "Type"
    value: "Type"


@dataclass(frozen=True)
class Struct:
    fields: "tuple[Column, ...]"

    def __post_init__(self) -> None:
        names = [field.name.lower() for field in self.fields]
        for at, name in enumerate(names):
            if name in names[:at]:
                raise SchemaError(f'field "{self.fields[at].name}" of a STRUCT is declared twice')


T = TypeVar("T")
Type = Scalar | Decimal | Array | Map | Struct


@dataclass(frozen=True)
class Column:
    name: str
    type: Type
    nullable: bool = True


@dataclass(frozen=True)
class Schema:
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for column in self.columns:
            if column.name.lower() in seen:
                raise SchemaError(f'column "{column.name}" is declared twice')
            if column.name.lower() in RESERVED:
                raise SchemaError(
                    f'"{column.name}" is the name of a hidden column',
                    detail=f"Every topic has {', '.join(RESERVED)}.",
                    hint="Choose another name.",
                )
            seen.add(column.name.lower())
        if not self.columns:
            raise SchemaError("a schema has at least one column")

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise SchemaError(
            f'column "{name}" does not exist',
            detail=f"The columns are {', '.join(self.names)}.",
            hint=did_you_mean(name, self.names),
        )

    def __str__(self) -> str:
        return ", ".join(
            f"{quoted(c.name)} {type_text(c.type)}{'' if c.nullable else ' NOT NULL'}" for c in self.columns
        )


def quoted(name: str) -> str:
    """As Spark reads it: letters beyond ASCII need backticks there."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else "`" + name.replace("`", "``") + "`"


def type_text(type_: Type) -> str:
    """The type as Spark SQL writes it."""
    match type_:
        case Scalar(name):
            return name
        case Decimal(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case Array(element):
            return f"ARRAY<{type_text(element)}>"
        case Map(key, value):
            return f"MAP<{type_text(key)}, {type_text(value)}>"
        case Struct(fields):
            inner = ", ".join(
                f"{quoted(f.name)}: {type_text(f.type)}{'' if f.nullable else ' NOT NULL'}" for f in fields
            )
            return f"STRUCT<{inner}>"
        case _:
            assert_never(type_)


def has_map(type_: Type) -> bool:
    """Whether there is a map in values of the type: Spark does not compare maps."""
    match type_:
        case Map():
            return True
        case Array(element):
            return has_map(element)
        case Struct(fields):
            return any(has_map(each.type) for each in fields)
        case Scalar() | Decimal():
            return False
        case _:
            assert_never(type_)


def arrow_type(type_: Type) -> pa.DataType:
    match type_:
        case Scalar(name):
            return SCALARS[name]
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Array(element):
            return pa.list_(pa.field("element", arrow_type(element)))
        case Map(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case Struct(fields):
            return pa.struct([pa.field(f.name, arrow_type(f.type)) for f in fields])
        case _:
            assert_never(type_)


def arrow_schema(schema: Schema) -> pa.Schema:
    return pa.schema([pa.field(c.name, arrow_type(c.type)) for c in schema.columns])


def parse_schema(text: str) -> Schema:
    """`id BIGINT NOT NULL, name STRING`  =>  Schema"""
    tokens = _Tokens(text)
    columns = tuple(_list_of(tokens, lambda: _column(tokens, colon=False)))
    tokens.expect_end()
    return Schema(columns)


def parse_type(text: str) -> Type:
    tokens = _Tokens(text)
    type_ = _type(tokens)
    tokens.expect_end()
    return type_


class _Tokens:
    """The words of a schema's text, with one word of look-ahead and the spot for errors."""

    WORD = re.compile(r"\s*(`(?:[^`]|``)+`|\w+|[<>(),:]|\S)")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.spot = 0

    def peek(self) -> str:
        found = self.WORD.match(self.text, self.at)
        self.spot = found.start(1) if found else len(self.text)
        return found.group(1) if found else ""

    def next(self) -> str:
        word = self.peek()
        if not word:
            raise self.error("the schema ends too early")
        self.at = self.spot + len(word)
        return word

    def accept(self, word: str) -> bool:
        if self.peek().upper() == word:
            self.next()
            return True
        return False

    def expect(self, word: str) -> None:
        if not self.accept(word):
            raise self.error(f'expected "{word}", found "{self.peek() or "the end"}"')

    def expect_end(self) -> None:
        if self.peek():
            raise self.error(f'unexpected "{self.peek()}"')

    def error(self, primary: str, *, hint: str = "") -> SchemaError:
        near = self.text[self.spot :].strip()[:40] or "the end"
        where = f'At character {self.spot + 1}, near "{near}", in "{self.text.strip()}".'
        return SchemaError(primary, detail=where, hint=hint or "Write columns as: id BIGINT NOT NULL, name STRING.")


def _list_of(tokens: _Tokens, item: Callable[[], Column]) -> Iterator[Column]:
    yield item()
    while tokens.accept(","):
        yield item()


def _column(tokens: _Tokens, *, colon: bool) -> Column:
    name = tokens.next()
    if not re.match(r"`.|\w", name, re.DOTALL):
        raise tokens.error(f'a column cannot be named "{name}"', hint="Write other names in backticks: `a-b` INT.")
    if name.startswith("`"):
        name = name[1:-1].replace("``", "`")
    if colon:
        tokens.accept(":")
    type_ = _type(tokens)
    nullable = True
    if tokens.accept("NOT"):
        tokens.expect("NULL")
        nullable = False
    return Column(name, type_, nullable)


def _type(tokens: _Tokens) -> Type:
    word = tokens.next()
    name = SYNONYMS.get(word.upper(), word.upper())
    if name in ("DECIMAL", "DEC", "NUMERIC"):
        return _decimal(tokens)
    if name == "ARRAY":
        return Array(_in_brackets(tokens, lambda: _type(tokens)))
    if name == "MAP":
        return _in_brackets(tokens, lambda: _map(tokens))
    if name == "STRUCT":
        return _in_brackets(tokens, lambda: Struct(tuple(_list_of(tokens, lambda: _column(tokens, colon=True)))))
    if name not in SCALARS:
        known = [*SCALARS, "DECIMAL", "ARRAY", "MAP", "STRUCT"]
        raise tokens.error(
            f'unknown type "{word}"',
            hint=did_you_mean(name, known, otherwise=f"The types are {', '.join(known)}."),
        )
    return Scalar(name)


def _in_brackets(tokens: _Tokens, inner: Callable[[], T]) -> T:
    tokens.expect("<")
    value = inner()
    tokens.expect(">")
    return value


def _map(tokens: _Tokens) -> Map:
    key = _type(tokens)
    tokens.expect(",")
    return Map(key, _type(tokens))


def _decimal(tokens: _Tokens) -> Decimal:
    precision, scale = 10, 0
    if tokens.accept("("):
        precision = _number(tokens)
        if tokens.accept(","):
            scale = _number(tokens)
        tokens.expect(")")
    if not (1 <= precision <= 38 and 0 <= scale <= precision):
        raise tokens.error(
            f"DECIMAL({precision},{scale}) does not exist",
            hint="1 <= precision <= 38, 0 <= scale <= precision.",
        )
    return Decimal(precision, scale)


def _number(tokens: _Tokens) -> int:
    word = tokens.next()
    if not word.isdecimal():
        raise tokens.error(f'expected a number, found "{word}"')
    return int(word)
