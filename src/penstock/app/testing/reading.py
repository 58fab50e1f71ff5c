"""Reading: documents become cases, or are refused with file and line.

Looked at here is the form of a case. Whether its values fit the columns of its pipeline turns out when it is run, and
is a matter of that case alone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from penstock.app.testing.case import Case, Row, Step, Weighted
from penstock.app.testing.documents import JSON_LINES, YAML, Document, Where, documents_in
from penstock.errors import CommandError, did_you_mean

T = TypeVar("T")
CASE_KEYS = ("case", "tags", "pipeline", "options", "error", "from", "steps")
STEP_KEYS = ("feed", "want", "changes", "late", "watermark", "restart", "crash")


def cases_in(paths: Iterable[Path]) -> list[Case]:
    """All cases of the files, in order; a folder stands for the case files in it."""
    files = [file for path in paths for file in _files(path)]
    return [_Reading(document).case() for file in files for document in documents_in(file)]


def _files(path: Path) -> Iterator[Path]:
    known = (*YAML, *JSON_LINES)
    if path.is_dir():
        found = sorted(each for each in path.iterdir() if each.suffix in known)
        if not found:
            raise CommandError(f'"{path}" holds no case files', hint=f"They end in {', '.join(known)}.")
        yield from found
    elif path.suffix in known:
        yield path
    else:
        raise CommandError(f'"{path}" is no case file', hint=f"Case files end in {', '.join(known)}.")


class _Reading:
    """One document; parts are named by the keys that lead to them."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def case(self) -> Case:
        value = self._map(self._document.value, (), "a case")
        self._check_keys(value, CASE_KEYS, (), "a case")
        for key in ("case", "pipeline"):
            if key not in value:
                raise self._wrong(f'a case needs "{key}"', ())
        error = self._text(value["error"], ("error",)) if "error" in value else None
        if (error is None) == ("steps" not in value):
            raise self._wrong('a case has either "steps" or an "error"', ("error",) if error is not None else ())
        steps = self._list(value.get("steps", []), ("steps",), "steps")
        return Case(
            name=self._text(value["case"], ("case",)),
            spot=self._document.spot(),
            pipeline=self._text(value["pipeline"], ("pipeline",)),
            steps=tuple(self._step(step, ("steps", at)) for at, step in enumerate(steps)),
            error=error,
            options=self._map(value.get("options", {}), ("options",), "options"),
            tags=tuple(self._text(tag, ("tags", at)) for at, tag in enumerate(self._list(*self._at(value, "tags")))),
            origin=self._text(value.get("from", ""), ("from",)),
        )

    def _at(self, value: Mapping[str, Any], key: str) -> tuple[Any, Where, str]:
        return value.get(key, []), (key,), key

    def _step(self, step: Any, where: Where) -> Step:
        value = self._map(step, where, "a step")
        self._check_keys(value, STEP_KEYS, where, "a step")
        return Step(
            number=int(where[-1]) + 1,
            spot=self._document.spot(where),
            feed=self._rows(value, where, "feed", self._fed),
            want=self._rows(value, where, "want", self._row),
            changes=self._rows(value, where, "changes", self._weighted),
            late=self._rows(value, where, "late", self._row),
            watermark=self._times(value, where, "watermark"),
            restart=self._truth(value, where, "restart"),
            crash=self._truth(value, where, "crash"),
        )

    def _rows(
        self, step: Mapping[str, Any], where: Where, key: str, row: Callable[[Any, Where], T]
    ) -> dict[str, tuple[T, ...]]:
        found = {}
        for name, rows in self._map(step.get(key) or {}, (*where, key), key).items():
            inside = (*where, key, name)
            each = self._list(rows if rows is not None else [], inside, f'"{name}"')
            found[name] = tuple(row(value, (*inside, at)) for at, value in enumerate(each))
        return found

    def _times(self, step: Mapping[str, Any], where: Where, key: str) -> dict[str, str]:
        found = self._map(step.get(key) or {}, (*where, key), key)
        for name, time in found.items():
            if not isinstance(time, str):
                raise self._wrong(f'"{key}" has a time for each stream', (*where, key, name))
        return found

    def _fed(self, value: Any, where: Where) -> Weighted:
        weight, row = self._weighted(value, where)
        if weight not in (1, -1):
            raise self._wrong(f"a row is fed with weight 1 or -1, not {weight}", where)
        return weight, row

    def _weighted(self, value: Any, where: Where) -> Weighted:
        weight, *row = self._row(value, where) or (None,)
        if not isinstance(weight, int) or isinstance(weight, bool) or weight == 0:
            raise self._wrong(
                "a row begins with its weight", where, hint="1 for a row that comes, -1 for one that leaves."
            )
        return weight, tuple(row)

    def _row(self, value: Any, where: Where) -> Row:
        return tuple(self._list(value, where, "a row"))

    def _truth(self, step: Mapping[str, Any], where: Where, key: str) -> bool:
        value = step.get(key, False)
        if not isinstance(value, bool):
            raise self._wrong(f'"{key}" is true or false', (*where, key))
        return value

    def _text(self, value: Any, where: Where) -> str:
        if isinstance(value, dict | list | None):
            raise self._wrong(f'"{where[0]}" is a text', where)
        return str(value)

    def _map(self, value: Any, where: Where, what: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self._wrong(f"{what} is a map of names to values", where)
        return value

    def _list(self, value: Any, where: Where, what: str) -> list[Any]:
        if not isinstance(value, list):
            raise self._wrong(f"{what} is a list", where)
        return value

    def _check_keys(self, value: Mapping[str, Any], known: tuple[str, ...], where: Where, what: str) -> None:
        for key in value:
            if key not in known:
                raise self._wrong(
                    f'{what} has no "{key}"',
                    (*where, key),
                    hint=did_you_mean(key, known, otherwise=f"It has {', '.join(known)}."),
                )

    def _wrong(self, primary: str, where: Where, *, hint: str = "") -> CommandError:
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where).lstrip(".")
        detail = f"It stands at {path}." if where else ""
        return CommandError(primary, detail=detail, hint=hint, spot=self._document.spot(where))
