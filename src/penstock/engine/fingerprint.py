"""Fingerprints: what a checkpoint depends on, part by part, so that a change can be named.

A fingerprint lies beside the checkpoint. It is the same in every process; white space, comments, the order of the
declarations and options that change no answer are not in it.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from penstock.engine.compile import Compiled
from penstock.engine.lineage import Lineage
from penstock.errors import EngineError
from penstock.log.protocol import OrderedLog
from penstock.model import Pipeline, Stream, Table, View, declaration_text

STATE_FORMAT = 10
"""Other bytes in pages, pages of another size or another number of slots need another number."""
NAMED = {"settings": "setting", "streams": "stream", "tables": "table", "files": "file", "views": "view"}
"""Parts that have parts, and what one of these is called."""


LEVELS, TOGETHER, APART = "levels", "together", "apart"
"""Beside what a checkpoint depends on it is written how its state lies: all levels in one operator, or each in one."""


def fingerprint_of(
    pipeline: Pipeline, compiled: Compiled, log: OrderedLog, settings: Mapping[str, str]
) -> dict[str, Any]:
    """A view counts as declared and as Catalyst understands it, which depends on what it reads."""
    own = {name: value for name, value in pipeline.options.spark.items() if name.startswith("spark.sql.")}
    texts = {each.name: _text(pipeline, each) for each in (*pipeline.relations, *pipeline.views)}
    return {
        "log": log.identity,
        "state format": STATE_FORMAT,
        "plan": _plan(compiled),
        "settings": {**settings, **own},
        "streams": {each.name: _digest(texts[each.name]) for each in pipeline.relations if isinstance(each, Stream)},
        "tables": {each.name: _digest(texts[each.name]) for each in pipeline.relations if isinstance(each, Table)},
        "files": dict(sorted(compiled.files.items())),
        "views": {name: _digest(texts[name] + plan) for name, plan in compiled.plans.items()},
    }


def _plan(compiled: Compiled) -> str:
    """The numbers of operators, under which their state lies, and what they feed."""
    operators = [
        (each.id, each.kind, [(edge.target.id, edge.port) for edge in each.edges]) for each in compiled.graph.operators
    ]
    return _digest(json.dumps(operators))


def _text(pipeline: Pipeline, part: Stream | Table | View) -> str:
    """One declaration without those around it."""
    options = replace(pipeline.options, ansi=False, time_zone="UTC", shuffle_partitions=None, spark={})
    relations, views = ((), (part,)) if isinstance(part, View) else ((part,), ())
    return declaration_text(replace(pipeline, relations=relations, views=views, options=options), meaning_only=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check_unchanged(lineage: Lineage, fingerprint: Mapping[str, Any]) -> None:
    """Refuses to go on with a checkpoint that was made by something else, and names what."""
    before = _read(lineage)
    if before.get("log") != fingerprint["log"]:
        raise EngineError(
            f'the checkpoint of pipeline "{lineage.pipeline}" belongs to another log',
            detail=f"It was made with log {before.get('log')}; this one is {fingerprint['log']}.",
            hint="Use the log it was made with, or start anew: penstock reset PIPELINE",
        )
    if changes := list(_changes(before, fingerprint)):
        raise EngineError(
            f'pipeline "{lineage.pipeline}" is not what it was when its answers were begun',
            detail=f"What changed: {', '.join(changes)}.",
            hint="To compute its answers anew from the log: penstock reset PIPELINE",
        )


def levels_of(lineage: Lineage) -> str:
    return str(_read(lineage).get(LEVELS, APART))


def _read(lineage: Lineage) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(lineage.fingerprint.read_text())
    except (OSError, ValueError) as error:
        raise EngineError(
            f'what pipeline "{lineage.pipeline}" was when its answers were begun cannot be read',
            detail=f"{type(error).__name__}: {error}.",
            hint="To compute its answers anew from the log: penstock reset PIPELINE",
        ) from error
    return found


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for part, new in after.items():
        old = before.get(part)
        if part in NAMED:
            old = old or {}
            for name in sorted({*old, *new}):
                if old.get(name) != new.get(name):
                    yield f"{NAMED[part]} {name}{_how(part, old.get(name), new.get(name))}"
        elif old != new:
            yield f"{part} ({old} before, {new} now)"


def _how(part: str, old: str | None, new: str | None) -> str:
    if old is None:
        return " (new)"
    if new is None:
        return " (gone)"
    return f" ({old} before, {new} now)" if part == "settings" else ""
