"""Failures of a running query, told as ours: what Spark says in one line, and what helps."""

import linecache
import re
from collections.abc import Iterator, Sequence
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from penstock.engine.nodes import Handle
from penstock.engine.wording import plain_lines, plain_text
from penstock.errors import EngineError, Spot
from penstock.model import Pipeline

PLAN: Final = "=== Streaming Query ==="
# How Spark words it where it cannot go on with a checkpoint.
DAMAGED: Final = re.compile(r"STATE_STORE|MALFORMED_LOG_FILE|not found in offset log|batch \d+ doesn't exist")
# How it words that somebody has stopped the query in the middle of a batch.
STOPPED: Final = re.compile(r"InterruptedException|[Cc]ancell?ed")
WORKER: Final = "from the Python worker"
CALLED: Final = re.compile(r'^  File "(.+)", line (\d+), in ', re.MULTILINE)


def failed(pipeline: Pipeline, error: PySparkException | Py4JJavaError) -> EngineError:
    said = list(_causes(error))
    if in_python := next((text for text in said if WORKER in text), ""):
        return _raised(pipeline, in_python)
    detail = _telling(said)
    if any(DAMAGED.search(text) for text in said):
        return EngineError(
            f'the checkpoint of pipeline "{pipeline.name}" is damaged',
            detail=detail,
            hint="Its views are as they were. To compute them anew from the log: penstock reset PIPELINE",
        )
    return EngineError(
        f'pipeline "{pipeline.name}" stopped',
        detail=detail,
        hint="Its views are as they were after the last batch; --debug shows all that Spark says.",
    )


def is_stopped(error: PySparkException | Py4JJavaError) -> bool:
    """Whether it only says that the query was stopped while it worked."""
    return any(STOPPED.search(text) for text in _causes(error))


def last_cause(error: PySparkException | Py4JJavaError) -> str:
    """What is at the bottom of it, in one line."""
    thrown: Handle = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    return _telling(list(_messages(thrown)) or [str(error)])


def _telling(said: Sequence[str]) -> str:
    """Of a chain of causes the last one that has a code says most; without any, the last of all."""
    return plain_text(next((text for text in reversed(said) if re.search(r"\[[A-Z_.]+\]", text)), said[-1]))


def _raised(pipeline: Pipeline, text: str) -> EngineError:
    """A function of the user's raised something: the last line of Python's report, at the innermost place."""
    lines = [line for line in plain_lines(text) if line.strip()]
    places = CALLED.findall(text)
    file, line = (places[-1][0], int(places[-1][1])) if places else ("", 0)
    return EngineError(
        f'a function in Python has stopped pipeline "{pipeline.name}"',
        detail=f"{lines[-1].strip()}. Its views are as they were after the last batch.",
        hint="Let the function give NULL for such values; then: penstock reset PIPELINE",
        spot=Spot(file, line, 1, linecache.getline(file, line).rstrip()) if places else None,
    )


def _causes(error: PySparkException | Py4JJavaError) -> Iterator[str]:
    if isinstance(error, PySparkException):
        yield str(error).partition(PLAN)[0]
    else:
        yield from _messages(error.java_exception)


def _messages(cause: Handle) -> Iterator[str]:
    while cause is not None:
        yield str(cause.getMessage() or cause.getClass().getSimpleName())
        cause = cause.getCause()
