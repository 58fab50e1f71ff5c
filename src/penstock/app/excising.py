"""Excising: a value goes from a topic, and from all that pipelines have made of it.

The records go from the log first. Then every pipeline that reads the topic is computed anew, as a new lineage, and what
the one before has left goes: its checkpoint, its change topics, its rows in the store, dead letters of its sinks.
Nothing is touched unless all of that can be done. Killed anywhere, it is done by doing it again.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.app.pipelines import Opened, Setting, opened, run_pipeline
from penstock.app.stores import purge, remove
from penstock.engine.whole import check_whole
from penstock.errors import CommandError
from penstock.log import Log
from penstock.log.excision import Excised
from penstock.views import current
from penstock.views.sinks import is_dead_topic

Told = Callable[[str], None]


def excise(
    folder: Path, topic: str, key: Mapping[str, Any], pipelines: Sequence[Path], *, by: str, told: Told
) -> Excised:
    """Takes the value out of the log in a folder and of these pipelines, which must be all that read the topic."""
    given = [opened(path, Setting(log=folder)) for path in pipelines]
    with Log.open(folder, create=False) as log:
        affected = _affected(log, topic, given)
        for each in affected:
            check_whole(log, each.pipeline)
        told(f'taking it out of topic "{topic}"')
        done = log.excise(topic, key, by=by)
    for each in affected:
        told(f'computing pipeline "{each.pipeline.name}" anew')
        run_pipeline(each.place.path, once=True, anew=True, setting=each.setting)
        told(f'removing what pipeline "{each.pipeline.name}" had before')
        _clear(folder, each)
    return done


def _affected(log: Log, topic: str, given: Sequence[Opened]) -> list[Opened]:
    """The pipelines that read the topic; refuses where one of them, or one that reads their answers, is not given."""
    names = log.readers(topic)
    known = {each.pipeline.name: each for each in given}
    if missing := [name for name in names if name not in known]:
        raise CommandError(
            f'pipeline "{missing[0]}" reads topic "{topic}", and has to be computed anew',
            detail="Nothing was changed.",
            hint="Name its folder too: --pipeline DIR",
        )
    for name in names:
        for changes in _topics_of(log, name):
            if others := [reader for reader in log.readers(changes) if reader != name]:
                raise CommandError(
                    f'pipeline "{others[0]}" reads "{changes}", which pipeline "{name}" has made of topic "{topic}"',
                    detail="Nothing was changed.",
                    hint="Let it read something else first.",
                )
    return [known[name] for name in names]


def _topics_of(log: Log, pipeline: str, *, before: int | None = None) -> list[str]:
    """The topics of all lineages of a pipeline, or of those before one."""
    found = []
    for topic in log.topics():
        number = topic.name.removeprefix(f"{pipeline}.").partition(".")[0]
        own = topic.name.startswith(f"{pipeline}.") and number.isdecimal()
        found += [topic.name] if own and (before is None or int(number) < before) else []
    return found


def _clear(folder: Path, at: Opened) -> None:
    with Log.open(folder, create=False) as log:
        lineage = current(log, at.pipeline.name)
        assert lineage is not None
        old = _topics_of(log, at.pipeline.name, before=lineage.number)
        letters = [each.name for each in log.topics() if is_dead_topic(at.pipeline.name, each.name)]
        log.forget([name for name in (*old, *letters) if log.begins(name) != log.ends(name)])
    purge(at.store, at.pipeline.name)
    remove(at.place.served)
