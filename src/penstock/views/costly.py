"""Costly functions: those of SQLite whose work is the product of two lengths, held to what is done in a moment.

SQLite gives up a query between two rows, never within a function, and `trim` of a few megabytes by a few megabytes
takes days. So here who asks too much is refused; all else SQLite answers itself, through a connection of its own.
"""

from functools import partial

import apsw

FUNCTIONS = (("instr", 2), ("replace", 3), ("trim", 2), ("ltrim", 2), ("rtrim", 2))
MOST = 50_000_000
"""Length by length; a tenth of a second."""
PATTERN = 200
"""The longest pattern of LIKE and GLOB, whose work is that times the length of the text."""
LARGEST = 1 << 26
"""Bytes of a value: what a condition makes of others, hex(hex(...)), must not fill the memory."""
Value = str | int | float | bytes | None


def hold(connection: apsw.Connection) -> None:
    """From now on the connection does no work of that kind without measure."""
    connection.limit(apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN)
    plain = apsw.Connection(":memory:")
    plain.limit(apsw.SQLITE_LIMIT_LENGTH, LARGEST)
    for name, count in FUNCTIONS:
        statement = f"SELECT {name}({', '.join('?' * count)})"
        connection.create_scalar_function(name, partial(_held, plain, name, statement), count, deterministic=True)


def _held(plain: apsw.Connection, name: str, statement: str, *values: Value) -> Value:
    if _length(values[0]) * _length(values[1]) > MOST:
        raise apsw.TooBigError(f"the values are too long for {name}")
    found: Value = plain.execute(statement, values).get
    return found


def _length(value: Value) -> int:
    return len(value) if isinstance(value, str | bytes) else 32
