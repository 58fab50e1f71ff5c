"""Every error text of the engine and the app is in a golden file, where people read it before users do."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import errors
from tests.texts import GOLDEN

SOURCE = Path(errors.__file__).parent
ROOMS = ("engine", "app")
ERRORS = {name for name in vars(errors) if name.endswith("Error")}


def raised(file: Path) -> Iterator[tuple[int, re.Pattern[str]]]:
    """Line and text of every error that a file makes; what is filled in later may be anything."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS:
            yield node.lineno, re.compile(pattern(node.args[0]), re.DOTALL)


def pattern(text: ast.expr) -> str:
    match text:
        case ast.Constant(value=str(value)):
            return re.escape(value)
        case ast.JoinedStr(values=parts):
            return "".join(pattern(part) for part in parts)
    return ".+?"


@pytest.mark.parametrize("room", ROOMS)
def test_every_error_text_is_in_a_golden_file(room: str) -> None:
    golden = [path.read_text() for path in GOLDEN.rglob("*.txt")]
    missing = [
        f"{file.relative_to(SOURCE)}:{line} {text.pattern}"
        for file in sorted((SOURCE / room).glob("*.py"))
        for line, text in raised(file)
        if not any(text.search(each) for each in golden)
    ]
    assert missing == []
