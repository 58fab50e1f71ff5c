"""Topics of a pipeline: those that it reads, made if they are missing, and those that its changes go to."""

from penstock.engine.lineage import Lineage
from penstock.errors import EngineError
from penstock.log import Log
from penstock.model import Pipeline, Stream, Table
from penstock.schema import Schema


def ensure_sources(log: Log, pipeline: Pipeline) -> None:
    """Every relation's topic is there and fits its declaration."""
    known = {topic.name for topic in log.topics()}
    for relation in pipeline.relations:
        if relation.topic not in known:
            log.create_topic(
                relation.topic,
                relation.schema,
                partitions=relation.partitions,
                key=relation.key if isinstance(relation, Table) else (),
                event_time=relation.event_time,
            )
        else:
            _check(log, relation)


def _check(log: Log, relation: Stream | Table) -> None:
    topic = log.topic(relation.topic)
    columns = {column.name: column.type for column in topic.schema.columns}
    for column in relation.schema.columns:
        if columns.get(column.name) != column.type:
            raise EngineError(
                f'topic "{topic.name}" does not fit the declaration of "{relation.name}"',
                detail=f"The topic has ({topic.schema}); declared is ({relation.schema}).",
                hint=f'Look at column "{column.name}".',
                spot=relation.spot,
            )
    if relation.event_time != topic.event_time and relation.event_time is not None:
        raise EngineError(
            f'topic "{topic.name}" does not fit the declaration of "{relation.name}"',
            detail=f"The topic's event time is {topic.event_time}; declared is {relation.event_time}.",
            spot=relation.spot,
        )


def ensure_changes(log: Log, lineage: Lineage, view: str, schema: Schema, key: tuple[str, ...]) -> str:
    """The view's change topic."""
    return log.create_topic(lineage.topic(view), schema, key=key).name
