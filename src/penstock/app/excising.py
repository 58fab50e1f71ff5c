"""Excising: a value goes from a topic, and from all that pipelines have made of it.

The records go from the log first. Then every pipeline that reads the topic is computed anew, as a new lineage, and what
those before have left goes: checkpoints, change topics, rows in the stores, dead letters of sinks. So does what is left
with a pipeline that read it before it was changed; its answers of now have nothing of it, and stay. Of a pipeline that
is no more, what is in the log goes. Nothing is touched unless all of that can be done. Killed anywhere, it is done by
doing it again.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from penstock.app.pipelines import Opened, Setting, opened, run_pipeline
from penstock.app.stores import opened_store, remove
from penstock.engine.lineage import current, end, lineage_of, older
from penstock.engine.locking import locked
from penstock.engine.run import epoch_name
from penstock.engine.whole import check_whole
from penstock.errors import CommandError
from penstock.log import Log
from penstock.log.excision import Excised
from penstock.views import catch_up
from penstock.views.parquet import ParquetStore
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
    must be all that read the topic, or have read it.
    """
    given = [opened(path, Setting(log=folder)) for path in pipelines]
    with ExitStack() as held:
        with Log.open(folder, create=False) as log:
            anew, changed = _affected(log, topic, given, ended)
            for each in anew:
                check_whole(log, each.pipeline)
            for each in changed:  # those that are computed anew take over from who is at work
                held.enter_context(locked(each.checkpoints, each.pipeline.name))
            told(f'taking it out of topic "{topic}"')
            done = log.excise(topic, key, by=by)
            for name in sorted(set(ended)):
                told(f'removing what pipeline "{name}" has left')
                _end(log, name)
        for each in anew:
            told(f'computing pipeline "{each.pipeline.name}" anew')
            run_pipeline(each.place.path, once=True, anew=True, setting=each.setting)
        for each in (*anew, *changed):
            told(f'removing what pipeline "{each.pipeline.name}" had before')
            _clear(folder, each)
    return done


def _affected(log: Log, topic: str, given: Sequence[Opened], ended: Sequence[str]) -> tuple[list[Opened], list[Opened]]:
    """The pipelines that read the topic, and those of which only what was before they were changed has come to the
    value; refuses where one of them is not given, or where somebody reads the answers that are to go.
    """
    _check_known(log, ended)
    known = {each.pipeline.name: each for each in given}
    reading = [name for name in log.readers(topic) if name not in ended]
    for name in reading:
        if name not in known:
            raise _missing(f'pipeline "{name}" reads topic "{topic}", and has to be computed anew', name)
    changed = dict(_formerly(log, topic, reading, ended))
    for name, read in changed.items():
        if name not in known:
            what = f'pipeline "{name}" has read topic "{read}" before it was changed, and may have kept something of it'
            raise _missing(what, name)
    return [known[name] for name in reading], [known[name] for name in changed]


def _formerly(log: Log, topic: str, reading: Sequence[str], ended: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The pipelines that have read, before they were changed, the topic or answers that are to go; each with what."""
    seen = {*reading, *ended}
    pending = [(name, topic) for name in log.former_readers(topic)]
    for name in sorted(seen):
        pending += _readers_of_answers(log, name, _topics_of(log, name), ended)
    while pending:
        name, read = pending.pop(0)
        if name not in seen:
            seen.add(name)
            yield name, read
            pending += _readers_of_answers(log, name, _topics_of(log, name, before=current(log, name)), ended)


def _readers_of_answers(
    log: Log, pipeline: str, topics: Sequence[str], ended: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Who has read these topics of a pipeline before it was changed, and which; refuses where somebody still does."""
    for changes in topics:
        if others := [reader for reader in log.readers(changes) if reader not in (pipeline, *ended)]:
            raise CommandError(
                f'pipeline "{others[0]}" reads "{changes}", which pipeline "{pipeline}" has made',
                detail="Nothing was changed.",
                hint="Let it read something else first.",
            )
        yield from ((reader, changes) for reader in log.former_readers(changes))


def _missing(what: str, pipeline: str) -> CommandError:
    return CommandError(
        what,
        detail="Nothing was changed.",
        hint=f"Name its folder too: --pipeline DIR. If it is no more: --ended {pipeline}",
    )


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
    """What lineages before the one that counts have left is nowhere any more: not in the stores, which stand where the
    log stands, not in the log, and in no checkpoint.
    """
    name = at.pipeline.name
    with Log.open(folder, create=False) as log:
        number = current(log, name)
        assert number is not None
        _purge(log, at)
        _forget(log, [*_topics_of(log, name, before=number), *_letters(log, name)])
    for home in (at.checkpoints, at.place.home):  # the latter from before the pipeline named a folder for them
        for path in older(home, number):
            shutil.rmtree(path)


def _purge(log: Log, at: Opened) -> None:
    at.place.home.mkdir(parents=True, exist_ok=True)
    with opened_store(at.store, at.pipeline.name) as store:
        catch_up(log, at.pipeline.name, store)
        store.purge()
    if at.has_files:
        with ParquetStore(at.place.files) as files:
            catch_up(log, at.pipeline.name, files, kept="files")
    for path in [at.place.served, *([at.place.store] if at.store != at.place.store else [])]:
        remove(path)


def _letters(log: Log, pipeline: str) -> list[str]:
    return [each.name for each in log.topics() if is_dead_topic(pipeline, each.name)]


def _forget(log: Log, topics: Sequence[str]) -> None:
    log.forget([name for name in topics if log.begins(name) != log.ends(name)])
