"""Excising: a value goes from a topic, and from all that pipelines have made of it.

The records go from the log first. Then every pipeline that reads the topic, or of which an earlier lineage did, is
computed anew, as a new lineage, and what those before have left goes: checkpoints, change topics, rows in the store,
dead letters of sinks. Of a pipeline that is no more, what is in the log goes. Nothing is touched unless all of that can
be done. Killed anywhere, it is done by doing it again.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.app.pipelines import Opened, Setting, opened, run_pipeline
from penstock.app.stores import purge, remove
from penstock.engine.lineage import end, lineage_of
from penstock.engine.run import epoch_name
from penstock.engine.whole import check_whole
from penstock.errors import CommandError
from penstock.log import Log
from penstock.log.excision import Excised
from penstock.views import current
from penstock.views.sinks import is_dead_topic

Told = Callable[[str], None]


def excise(  # noqa: PLR0913 (who wants what taken where)
    folder: Path,
    topic: str,
    key: Mapping[str, Any],
    pipelines: Sequence[Path],
    *,
    ended: Sequence[str] = (),
    by: str,
    told: Told,
) -> Excised:
    """Takes the value out of the log in a folder and of these pipelines; they, and those that have `ended` for good,
    must be all that read the topic.
    """
    given = [opened(path, Setting(log=folder)) for path in pipelines]
    with Log.open(folder, create=False) as log:
        affected = _affected(log, topic, given, ended)
        for each in affected:
            check_whole(log, each.pipeline)
        told(f'taking it out of topic "{topic}"')
        done = log.excise(topic, key, by=by)
        for name in sorted(set(ended)):
            told(f'removing what pipeline "{name}" has left')
            _end(log, name)
    for each in affected:
        told(f'computing pipeline "{each.pipeline.name}" anew')
        run_pipeline(each.place.path, once=True, anew=True, setting=each.setting)
        told(f'removing what pipeline "{each.pipeline.name}" had before')
        _clear(folder, each)
    return done


def _affected(log: Log, topic: str, given: Sequence[Opened], ended: Sequence[str]) -> list[Opened]:
    """The pipelines that read the topic; refuses where one of them, or one that reads their answers, is not given."""
    names = log.readers(topic)
    _check_known(log, ended)
    known = {each.pipeline.name: each for each in given}
    if missing := [name for name in names if name not in known and name not in ended]:
        raise CommandError(
            f'pipeline "{missing[0]}" reads topic "{topic}", and has to be computed anew',
            detail="Nothing was changed.",
            hint=f"Name its folder too: --pipeline DIR. If it is no more: --ended {missing[0]}",
        )
    for name in sorted({*names, *ended}):
        for changes in _topics_of(log, name):
            if others := [reader for reader in log.readers(changes) if reader not in (name, *ended)]:
                raise CommandError(
                    f'pipeline "{others[0]}" reads "{changes}", which pipeline "{name}" has made',
                    detail="Nothing was changed.",
                    hint="Let it read something else first.",
                )
    return [known[name] for name in names if name not in ended]


def _topics_of(log: Log, pipeline: str, *, before: int | None = None) -> list[str]:
    """The topics of all lineages of a pipeline, or of those before one."""
    numbers = {topic.name: lineage_of(pipeline, topic.name) for topic in log.topics()}
    return [name for name, number in numbers.items() if number is not None and (before is None or number < before)]


def _check_known(log: Log, ended: Sequence[str]) -> None:
    if unknown := [name for name in ended if log.last(name) is None and not _topics_of(log, name)]:
        raise CommandError(
            f'no pipeline "{unknown[0]}" has written into this log',
            detail="Nothing was changed.",
            hint="A pipeline has the name of its folder.",
        )


def _end(log: Log, pipeline: str) -> None:
    """It reads nothing from now on, and nothing that it has written is left. A run of it that lives can append nothing
    any more.
    """
    log.raise_epoch(epoch_name(pipeline))
    _forget(log, [*_topics_of(log, pipeline), *_letters(log, pipeline)])
    end(log, pipeline)


def _clear(folder: Path, at: Opened) -> None:
    with Log.open(folder, create=False) as log:
        lineage = current(log, at.pipeline.name)
        assert lineage is not None
        old = _topics_of(log, at.pipeline.name, before=lineage.number)
        _forget(log, [*old, *_letters(log, at.pipeline.name)])
    purge(at.store, at.pipeline.name)
    remove(at.place.served)


def _letters(log: Log, pipeline: str) -> list[str]:
    return [each.name for each in log.topics() if is_dead_topic(pipeline, each.name)]


def _forget(log: Log, topics: Sequence[str]) -> None:
    log.forget([name for name in topics if log.begins(name) != log.ends(name)])
