"""Topics that a pipeline reads: made if they are missing, else held against the declarations."""

from penstock.errors import EngineError
from penstock.log import Log
from penstock.model import History, Pipeline, Stream, Table


def ensure_sources(log: Log, pipeline: Pipeline) -> None:
    """Every relation's topic is there and fits its declaration; a history has that of its table."""
    known = {topic.name for topic in log.topics()}
    for relation in [each for each in pipeline.relations if not isinstance(each, History)]:
        if relation.topic not in known:
            known.add(relation.topic)
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
            detail = f"The topic has ({topic.schema}); declared is ({relation.schema})."
            raise _misfit(relation, detail, hint=f'Look at column "{column.name}".')
    if isinstance(relation, Table) and topic.key and not (relation.key and set(relation.key) <= set(topic.key)):
        # A deletion in the topic holds the topic's key only: it would not say which row of the table leaves.
        raise _misfit(relation, f"The topic's key is {_listed(topic.key)}; declared is {_listed(relation.key)}.")
    if relation.event_time is not None and relation.event_time != topic.event_time:
        raise _misfit(
            relation, f"The topic's event time is {topic.event_time or 'none'}; declared is {relation.event_time}."
        )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"


def _misfit(relation: Stream | Table, detail: str, *, hint: str = "") -> EngineError:
    return EngineError(
        f'topic "{relation.topic}" does not fit the declaration of "{relation.name}"',
        detail=detail,
        hint=hint,
        spot=relation.spot,
    )
