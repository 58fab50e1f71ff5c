"""Documents: the text of a case file as values, with the line of every part of them.

YAML is read by the core schema of YAML 1.2: only `true` and `false` are booleans, and a date is a text. Numbers with a
point keep all their digits. A key that stands twice is refused, in JSON too.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from penstock.errors import CommandError, Spot

Where = tuple[str | int, ...]
"""The keys and indexes that lead to a part of a document."""
YAML = (".yaml", ".yml")
JSON_LINES = (".jsonl",)


@dataclass(frozen=True)
class Document:
    """One case as it stands in its file."""

    file: str
    value: Any
    lines: Mapping[Where, int]
    texts: tuple[str, ...] = field(default=(), repr=False)

    def spot(self, where: Where = ()) -> Spot:
        """The line of a part, or of the nearest part around it that has one."""
        while where not in self.lines:
            where = where[:-1]
        line = self.lines[where]
        text = self.texts[line - 1] if line <= len(self.texts) else ""
        return Spot(self.file, line, len(text) - len(text.lstrip()) + 1, text)


def documents_in(path: Path) -> Iterator[Document]:
    """The documents of a file; what cannot be read is refused with its line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CommandError(f'"{path}" cannot be read', detail=f"{error.strerror}.") from None
    except UnicodeDecodeError:
        raise CommandError(f'"{path}" is not UTF-8', hint="Save it as UTF-8.") from None
    return (_json_lines if path.suffix in JSON_LINES else _yaml)(str(path), text)


# YAML


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc] # in C where that was built
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (filled below, one for the class)


def _resolves(tag: str, pattern: str, first: str) -> None:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), [*first, ""])


_resolves("null", "~|null|Null|NULL|", "~nN")
_resolves("bool", "true|True|TRUE|false|False|FALSE", "tTfF")
_resolves("int", "[-+]?[0-9]+", "-+0123456789")
_resolves("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789")
SCALARS: Mapping[str, Callable[[str], Any]] = {
    "null": lambda _: None,
    "bool": lambda text: text.lower() == "true",
    "int": int,
    "float": Decimal,
    "str": str,
}


def _yaml(file: str, text: str) -> Iterator[Document]:
    texts = tuple(text.splitlines())
    try:
        for root in yaml.compose_all(text, Loader=_Loader):
            if root is not None:
                lines: dict[Where, int] = {}
                yield Document(file, _value(root, (), lines, file), lines, texts)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line, column = (mark.line, mark.column) if mark else (0, 0)
        shown = texts[line] if line < len(texts) else ""
        raise CommandError(
            f'"{file}" is no YAML: {error.problem}', spot=Spot(file, line + 1, column + 1, shown)
        ) from None
    except yaml.YAMLError as error:
        raise CommandError(f'"{file}" is no YAML', detail=f"{str(error).splitlines()[0]}.") from None


def _value(node: yaml.Node, where: Where, lines: dict[Where, int], file: str) -> Any:
    lines.setdefault(where, node.start_mark.line + 1)
    match node:
        case yaml.ScalarNode():
            kind = node.tag.rpartition(":")[2]
            return SCALARS.get(kind, str)(node.value)
        case yaml.SequenceNode():
            return [_value(each, (*where, at), lines, file) for at, each in enumerate(node.value)]
        case _:
            found: dict[Any, Any] = {}
            for key, value in node.value:
                name = key.value if isinstance(key, yaml.ScalarNode) else str(key.value)
                _check_new(name, found, file, key.start_mark.line + 1)
                lines[(*where, name)] = key.start_mark.line + 1
                found[name] = _value(value, (*where, name), lines, file)
            return found


# JSON


def _json_lines(file: str, text: str) -> Iterator[Document]:
    for line, each in enumerate(text.split("\n"), start=1):
        if each.strip():
            yield Document(file, _json(file, line, each), {(): line})


def _json(file: str, line: int, text: str) -> Any:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in items:
            _check_new(name, found, file, line)
            found[name] = value
        return found

    try:
        return json.loads(text, parse_float=Decimal, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise CommandError(
            f'"{file}" has a line that is no JSON: {error.msg}', spot=Spot(file, line, error.colno, text)
        ) from None


def _check_new(name: str, found: Mapping[str, Any], file: str, line: int) -> None:
    if name in found:
        raise CommandError(f'"{name}" stands twice', spot=Spot(file, line, 1, ""))
