"""Whether the log still holds what answers are computed from, from its first record on.

Records that are kept no longer are missing for every relation. Where a topic has been compacted, a table with a key is
as it was; a stream, or the history of a table, is not.
"""

from penstock.engine.timing import retains
from penstock.errors import EngineError
from penstock.log.protocol import OrderedLog
from penstock.model import Pipeline, Stream, Table

LONGER = "Keep records longer, from now on: penstock log retain TOPIC. What has gone comes back only from a copy."


def check_whole(log: OrderedLog, pipeline: Pipeline, *, until: int | None = None) -> None:
    """Refuses where the records before a frame, or all, are not what they were; names the first that is missing."""
    check_not_compacted_by_others(log, pipeline)
    known = {topic.name for topic in log.topics()}
    for relation in pipeline.relations:
        if relation.topic in known:
            _check_kept(log, pipeline, relation)
            _check_versions(log, pipeline, relation, until)


def check_not_compacted_by_others(log: OrderedLog, pipeline: Pipeline) -> None:
    """Refuses topics of which records may go at any time that a relation needs, and nobody would notice."""
    needing = {each.topic: each.name for each in pipeline.relations if not _newest_is_enough(pipeline, each)}
    known = {topic.name for topic in log.topics()}
    for topic in log.compacted_by_others(sorted(needing.keys() & known)):
        raise EngineError(
            f'topic "{topic}" is compacted by Kafka, and pipeline "{pipeline.name}" needs all of its records',
            detail='Its cleanup.policy has "compact": Kafka takes all but the newest record of each key, at any time. '
            f'"{needing[topic]}" needs every one.',
            hint="Set cleanup.policy=delete for it, or read it as a table with a key, without retain.",
        )


def _newest_is_enough(pipeline: Pipeline, relation: Stream | Table) -> bool:
    return isinstance(relation, Table) and bool(relation.key) and not retains(pipeline)


def _check_kept(log: OrderedLog, pipeline: Pipeline, relation: Stream | Table) -> None:
    for partition, begin in enumerate(log.begins(relation.topic)):
        if begin > 0:
            raise EngineError(
                f'records that pipeline "{pipeline.name}" is computed from are kept no longer',
                detail=f'Topic "{relation.topic}", partition {partition}: the first that is missing is offset 0, the '
                f"first that is there is offset {begin}.",
                hint=LONGER,
            )


def _check_versions(log: OrderedLog, pipeline: Pipeline, relation: Stream | Table, until: int | None) -> None:
    below = log.describe(relation.topic).compacted
    newest_is_enough = _newest_is_enough(pipeline, relation)
    if below == 0 or (newest_is_enough and (until is None or until >= below)):
        return
    if newest_is_enough:
        raise EngineError(
            f'the views of pipeline "{pipeline.name}" are older than the compaction of what they were computed from',
            detail=f'They have read up to frame {until}; topic "{relation.topic}" is compacted before frame {below}.',
            hint="Run the pipeline, then try again.",
        )
    raise EngineError(
        f'records that pipeline "{pipeline.name}" is computed from have been compacted away',
        detail=f'Of topic "{relation.topic}" only the newest record of each key is there before frame {below}; '
        f'"{relation.name}" needs every one.',
        hint="Read it as a table with a key, or do not compact it.",
    )
