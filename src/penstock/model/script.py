"""The user's Python files: run under their own names, their mistakes shown where they stand.

A file runs as a module of its own; its `__name__` is not `__main__`. While a pipeline is being loaded, its folder is on
the import path, so that files can import helpers that lie beside them. Afterwards the path and the helpers are
forgotten: two pipelines may have helpers of one name, and Spark, whose workers cannot import them, sends their
functions whole.
"""

import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType, ModuleType, TracebackType

from penstock.errors import ModelError, Spot

ROOM = f"{__package__}."
NOT_YET = (
    "The file is read before Spark starts. What needs Spark belongs into a view's function; a udf outside of it needs "
    'its type as an object: IntegerType() instead of "int".'
)


def run_script(path: Path) -> None:
    """Runs the file; whatever it raises becomes a `ModelError` that shows the place."""
    module = ModuleType(f"penstock_pipeline_{path.stem}")
    module.__file__ = str(path)
    # Dataclasses look their own module up while they are made.
    sys.modules[module.__name__] = module
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    except ModelError:
        raise
    except (Exception, SystemExit) as error:
        raise _shown(error, path) from error
    finally:
        del sys.modules[module.__name__]


@contextmanager
def imports_from(folder: Path) -> Iterator[None]:
    """Inside, Python files of the folder can be imported."""
    place, before = str(folder.resolve()), set(sys.modules)
    sys.path.insert(0, place)
    try:
        yield
    finally:
        sys.path.remove(place)
        for name in [name for name in sys.modules if name not in before and _lies_in(Path(place), name)]:
            del sys.modules[name]


def caller() -> Spot:
    """The place of the call that led into this room."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(ROOM):
        frame = frame.f_back
    return Spot("", 1, 1, "") if frame is None else _spot(frame.f_code, frame.f_lasti)


def _lies_in(folder: Path, name: str) -> bool:
    """Whether a module was found in the folder itself; a virtual environment inside it is another place."""
    top = name.partition(".")[0]
    module = sys.modules.get(top)
    found = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    return any(str(folder / place) in found for place in (f"{top}.py", top))


def _shown(error: BaseException, path: Path) -> ModelError:
    if isinstance(error, SyntaxError) and error.filename:
        spot = Spot(error.filename, error.lineno or 1, error.offset or 1, (error.text or "").rstrip("\r\n"))
        return ModelError(f'"{path.name}" is no Python: {error.msg}', spot=spot)
    return ModelError(
        f'"{path.name}" stopped with {type(error).__name__}' + (f": {error}" if str(error) else ""),
        hint=NOT_YET if "SESSION_OR_CONTEXT_NOT_EXISTS" in str(error) else "",
        spot=_last_spot(error.__traceback__, path.parent),
    )


def _last_spot(trace: TracebackType | None, folder: Path) -> Spot | None:
    """The innermost place that is the user's own."""
    spot = None
    while trace is not None:
        code = trace.tb_frame.f_code
        if Path(code.co_filename).resolve().parent == folder.resolve():
            spot = _spot(code, trace.tb_lasti)
        trace = trace.tb_next
    return spot


def _spot(code: CodeType, instruction: int) -> Spot:
    line, _, column, _ = next(islice(code.co_positions(), instruction // 2, None))
    linecache.checkcache(code.co_filename)
    text = linecache.getline(code.co_filename, line or 1).rstrip("\r\n")
    # Python counts bytes here.
    before = text.encode()[: column or 0].decode(errors="ignore")
    return Spot(code.co_filename, line or 1, len(before) + 1, text)
