"""Statements of a `.sql` file become declarations.

    CREATE STREAM name (columns) [WITH (option = value, ...)];
    CREATE TABLE name (columns) [WITH (option = value, ...)];
    CREATE VIEW name [WITH (option = value, ...)] AS query;
    SET option = value;

A query is not read, only kept; it is Spark's. The last semicolon may be missing. The first mistake is an error that
shows its place.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from penstock.errors import ModelError, Spot
from penstock.model.build import Declared, stream_of, table_of, view_of
from penstock.model.columns import columns_read
from penstock.model.cursor import Cursor, statements
from penstock.model.options import Given
from penstock.model.scanner import Source, Token, spot_at, string_value
from penstock.model.view import Sql

STATEMENTS = "The statements of a pipeline are CREATE STREAM, CREATE TABLE, CREATE VIEW and SET."
AS_A_WHOLE = "Leave it out: a pipeline is read as a whole, nothing is there before it."
QUERY_STARTS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")
CREATE_HINTS = {
    "OR": AS_A_WHOLE,
    "MATERIALIZED": "Write CREATE VIEW: every view of a pipeline is kept up to date.",
    "STREAMING": "Write CREATE STREAM for what is read, CREATE VIEW for what is derived.",
    "TEMPORARY": "Write CREATE VIEW v WITH (store = 'none') for a view that only other views read.",
    "TEMP": "Write CREATE VIEW v WITH (store = 'none') for a view that only other views read.",
}


def declarations(source: Source) -> Iterator[Declared]:
    for cursor in statements(source):
        yield _declaration(cursor)
        cursor.expect_end()


def _declaration(cursor: Cursor) -> Declared:
    if cursor.accept("SET"):
        return _set(cursor)
    if cursor.accept("CREATE", "STREAM"):
        return _stream(cursor)
    if cursor.accept("CREATE", "TABLE"):
        return _table(cursor)
    if cursor.accept("CREATE", "VIEW"):
        return _view(cursor)
    raise _no_statement(cursor)


def _stream(cursor: Cursor) -> Declared:
    name, spot = _name(cursor, "stream")
    found = columns_read(cursor)
    if found.key:
        raise ModelError(
            f'stream "{name}" cannot have a PRIMARY KEY',
            detail="A stream only grows: every record is a row of its own.",
            hint="Write CREATE TABLE for a relation that holds the newest row of every key.",
            spot=found.key_spot,
        )
    return stream_of(name, found.schema, _options(cursor), spot=spot)


def _table(cursor: Cursor) -> Declared:
    name, spot = _name(cursor, "table")
    if cursor.at("AS"):
        raise cursor.error('unexpected "AS"', hint="Write CREATE VIEW for what a query gives.")
    found = columns_read(cursor)
    given = _options(cursor)
    return table_of(name, found.schema, given, key=found.key, spot=spot, key_spot=found.key_spot)


def _view(cursor: Cursor) -> Declared:
    name, spot = _name(cursor, "view")
    if cursor.at("("):
        raise cursor.error("a view takes no list of columns", hint="Name them in the query: SELECT a AS b.")
    given = _options(cursor)
    cursor.expect("AS")
    return view_of(name, _query(cursor), given, spot=spot)


def _query(cursor: Cursor) -> Sql:
    if not any(cursor.at(word) for word in QUERY_STARTS):
        raise cursor.error(f"expected a query, found {cursor.shown()}", hint="A query begins with SELECT or WITH.")
    spot, found = cursor.spot(), cursor.rest()
    _check_one_statement(cursor.source, found)
    return Sql(cursor.source.text[found[0].start : found[-1].end], spot)


def _check_one_statement(source: Source, found: Sequence[Token]) -> None:
    """A forgotten semicolon would make the next statement part of the query, and Spark's message is of little help."""
    for first, second in pairwise(found):
        if first.text.upper() == "CREATE" and second.text.upper() in ("STREAM", "TABLE", "VIEW"):
            raise ModelError(
                f'unexpected "{first.text}" in a query',
                hint="A statement ends with a semicolon; is one missing?",
                spot=spot_at(source, first.start),
            )


def _set(cursor: Cursor) -> Given:
    spot = cursor.spot()
    parts = [_option_word(cursor)]
    while cursor.accept("."):
        parts.append(_option_word(cursor))
    return _valued(cursor, ".".join(parts), spot)


def _name(cursor: Cursor, what: str) -> tuple[str, Spot]:
    if cursor.at("IF", "NOT", "EXISTS"):
        raise cursor.error("unexpected IF NOT EXISTS", hint=AS_A_WHOLE)
    spot = cursor.spot()
    name = cursor.identifier(f"the name of a {what}")
    if cursor.at("."):
        raise cursor.error(f"the name of a {what} has one part", hint="A pipeline has no catalogs and no databases.")
    return name, spot


def _options(cursor: Cursor) -> list[Given]:
    if not cursor.accept("WITH"):
        return []
    cursor.expect("(")
    given = [_option(cursor)]
    while cursor.accept(","):
        given.append(_option(cursor))
    cursor.expect(")")
    return given


def _option(cursor: Cursor) -> Given:
    spot = cursor.spot()
    return _valued(cursor, _option_word(cursor), spot)


def _option_word(cursor: Cursor) -> str:
    token = cursor.peek()
    if token is not None and token.kind == "string":
        return string_value(cursor.next("an option"))
    return cursor.identifier("an option")


def _valued(cursor: Cursor, word: str, spot: Spot) -> Given:
    cursor.expect("=")
    value_spot = cursor.spot()
    return Given(word, _value(cursor), spot, value_spot)


def _value(cursor: Cursor) -> object:
    """A string, a number, or true or false; or corrected(...), as text."""
    if cursor.at("CORRECTED", "("):
        return _corrected(cursor)
    for word, value in (("TRUE", True), ("FALSE", False)):
        if cursor.accept(word):
            return value
    sign = -1 if cursor.accept("-") else 1
    match cursor.peek():
        case Token("number", text):
            cursor.next("a value")
            return sign * (int(text) if text.isdigit() else float(text))
        case Token("string") as token if sign == 1:
            cursor.next("a value")
            return string_value(token)
        case _:
            raise _no_value(cursor)


def _corrected(cursor: Cursor) -> str:
    """All up to the closing parenthesis, and the name that follows."""
    begin = cursor.next("a value").start
    while not cursor.accept(")"):
        cursor.next('")"')
    if cursor.accept("AS"):
        cursor.identifier("the name of a column")
    return cursor.source.text[begin : cursor.tokens[cursor.number - 1].end]


def _no_statement(cursor: Cursor) -> ModelError:
    if cursor.accept("CREATE"):
        hint = next((CREATE_HINTS[word] for word in CREATE_HINTS if cursor.at(word)), "")
        return cursor.error(f"expected STREAM, TABLE or VIEW after CREATE, found {cursor.shown()}", hint=hint)
    query = any(cursor.at(word) for word in QUERY_STARTS)
    hint = "Give the query a name: CREATE VIEW name AS ..." if query else ""
    return cursor.error(f"unexpected {cursor.shown()}", detail=STATEMENTS, hint=hint)


def _no_value(cursor: Cursor) -> ModelError:
    token = cursor.peek()
    if token is None or token.kind != "word":
        return cursor.error(f"expected a value, found {cursor.shown()}")
    if cursor.at("INTERVAL"):
        return cursor.error("unexpected INTERVAL", hint="Write a duration as text: '10 seconds'.")
    if cursor.at(token.text.upper(), "("):
        return cursor.error(
            f"{token.text}(...) as a value is not supported yet", hint="Write a text, a number, true or false."
        )
    return cursor.error(f"expected a value, found {cursor.shown()}", hint=f"Write texts in quotes: '{token.text}'.")
