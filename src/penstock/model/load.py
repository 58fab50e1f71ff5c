"""A folder becomes a pipeline.

All its `.sql` and `.py` files count, in the order of their names; those that begin with `_` or `.` do not, and folders
inside it are not entered. A path to one file is a pipeline of that file alone. What is declared may stand in any order
and in both languages.
"""

from collections.abc import Mapping
from pathlib import Path

from penstock.errors import ModelError, Spot
from penstock.model.build import Declared, pipeline_from
from penstock.model.declare import drafting
from penstock.model.options import Given
from penstock.model.parser import declarations
from penstock.model.pipeline import Pipeline
from penstock.model.scanner import Source
from penstock.model.script import imports_from, run_script

SUFFIXES = (".sql", ".py")
SINGLE = "pipeline"


def load_pipeline(path: Path) -> Pipeline:
    """The pipeline in a folder, or in a single file."""
    folder = path if path.is_dir() else path.parent
    files = _files(path)
    draft: list[Declared] = []
    with imports_from(folder):
        for file in files:
            _read(file, draft)
    if not any(not isinstance(each, Given) for each in draft):
        raise _nothing_declared(path, files)
    return pipeline_from(draft, name=_name(path), folder=folder)


def pipeline_of(text: str, *, name: str = SINGLE, options: Mapping[str, object] | None = None) -> Pipeline:
    """The pipeline that a SQL text declares, with further options."""
    draft = [*declarations(Source(f"{name}.sql", text)), *(Given(*each) for each in (options or {}).items())]
    return pipeline_from(draft, name=name, folder=Path())


def _files(path: Path) -> list[Path]:
    if path.is_file() and path.suffix in SUFFIXES:
        return [path]
    if path.is_file():
        raise ModelError(f'"{path}" is no pipeline', hint="A pipeline is a folder, or a file that ends in .sql or .py.")
    if not path.is_dir():
        raise ModelError(
            f'there is no pipeline "{path}"',
            detail="A pipeline is a folder with .sql and .py files, or one such file.",
            hint=f"Make one: penstock init {path}",
        )
    files = [each for each in path.iterdir() if each.suffix in SUFFIXES and each.is_file()]
    return sorted((each for each in files if each.name[0] not in "_."), key=lambda each: each.name)


def _read(file: Path, draft: list[Declared]) -> None:
    if file.suffix == ".py":
        with drafting(draft):
            run_script(file)
    else:
        draft.extend(declarations(Source(str(file), _text(file))))


def _text(file: Path) -> str:
    content = file.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ModelError(
            f'"{file.name}" is not UTF-8', hint="Save it as UTF-8.", spot=Spot(str(file), line, 1, "")
        ) from error


def _nothing_declared(path: Path, files: list[Path]) -> ModelError:
    names = ", ".join(file.name for file in files)
    return ModelError(
        f'"{path}" declares nothing',
        detail=f"Read were {names}." if names else "It has no .sql and no .py files.",
        hint="Write CREATE STREAM, CREATE TABLE or CREATE VIEW in a .sql file, or ps.stream, ps.table or @ps.view "
        "in a .py file.",
    )


def _name(path: Path) -> str:
    """`shop` and `shop/pipeline.sql` are both the pipeline "shop"."""
    whole = path.resolve()
    if whole.is_file():
        return whole.parent.name if whole.stem == SINGLE else whole.stem
    return whole.name
