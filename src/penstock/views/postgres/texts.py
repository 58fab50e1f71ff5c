"""Texts: strings of Spark, which hold any bytes, as texts of PostgreSQL, which hold neither NUL nor what is not UTF-8.

Each byte that a text cannot hold is U+FDD0, a character that no text has, and two hexadecimal digits; so are the bytes
of U+FDD0 itself. So different strings are different texts, and `plain` is the inverse of `escaped`.
"""

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

MARK = "\ufdd0"
UNFIT = re.compile(f"[\0{MARK}\ud800-\udfff]")
ESCAPED = re.compile(f"(?:{MARK}[0-9a-f]{{2}})+")


def escaped(text: str) -> str:
    """Of a string whose bytes that are not UTF-8 are half characters, as `surrogateescape` makes them."""
    return UNFIT.sub(lambda found: "".join(f"{MARK}{byte:02x}" for byte in _bytes(found[0])), text)


def plain(text: str) -> str:
    return ESCAPED.sub(lambda found: _unmarked(found[0]).decode(errors="surrogateescape"), text)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _unmarked(text: str) -> bytes:
    return bytes.fromhex(text.replace(MARK, ""))


def escaped_array(array: pa.Array) -> pa.Array:
    """Strings as texts, in Arrow; most are that already."""
    if _fits(array):
        return array
    data = array.cast(pa.binary()).to_pylist()
    return pa.array([None if each is None else escaped(each.decode(errors="surrogateescape")) for each in data])


def _fits(array: pa.Array) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    held = array.cast(pa.binary())
    unfit = pc.or_(pc.match_substring(held, b"\0"), pc.match_substring(held, MARK.encode()))
    return not pc.any(unfit).as_py()


def escaped_json(value: Any) -> Any:
    """All strings in a value of JSON, the names in its objects too."""
    return _mapped(value, escaped)


def plain_json(value: Any) -> Any:
    return _mapped(value, plain)


def _mapped(value: Any, text: Any) -> Any:
    match value:
        case str():
            return text(value)
        case list() | tuple():
            return [_mapped(each, text) for each in value]
        case dict():
            return {text(name): _mapped(each, text) for name, each in value.items()}
        case _:
            return value
