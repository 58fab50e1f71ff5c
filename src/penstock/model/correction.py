"""Corrected event times as people write them: corrected(occurred_at, sent_at, received_at, '1 hour') AS at.

The bound and the name may be missing: a day, and the column `event_time`.
"""

from datetime import timedelta

from penstock.errors import ModelError
from penstock.log.correction import BOUND, Correction
from penstock.model.cursor import Cursor
from penstock.model.duration import duration_text, parse_duration
from penstock.model.scanner import Source, Token, string_text, string_value, tokens
from penstock.schema import quoted

NAME = "event_time"
FORM = "Write it as: corrected(occurred_at, sent_at, received_at, '1 day') AS at"


def correction_read(text: str) -> tuple[Correction, str] | None:
    """The correction and the column that holds the corrected time; None where the text is not one."""
    source = Source("", text)
    found = list(tokens(source))
    cursor = Cursor(source, found, len(text))
    if not cursor.accept("CORRECTED", "("):
        return None
    try:
        return _read(cursor)
    except ModelError as error:
        raise ModelError(
            f"{text!r} corrects no time", detail=f"{error.primary}.", hint=FORM, about="event_time"
        ) from None


def _read(cursor: Cursor) -> tuple[Correction, str]:
    columns = [cursor.identifier("a column")]
    for _ in range(2):
        cursor.expect(",")
        columns.append(cursor.identifier("a column"))
    bound = BOUND
    if cursor.accept(","):
        bound = _bound(cursor.next("a duration"))
    cursor.expect(")")
    name = cursor.identifier("a name") if cursor.accept("AS") else NAME
    cursor.expect_end()
    return Correction(columns[0], columns[1], columns[2], bound), name


def _bound(token: Token) -> timedelta:
    if token.kind != "string":
        raise ModelError(f'"{token.text}" is no duration in quotes')
    return parse_duration(string_value(token))


def correction_text(correction: Correction, name: str) -> str:
    parts = [*map(quoted, correction.columns)]
    if correction.bound != BOUND:
        parts.append(string_text(duration_text(correction.bound)))
    return f"corrected({', '.join(parts)}) AS {quoted(name)}"
