"""Topics that a pipeline reads: made if they are missing, else held against the declarations."""

from penstock.errors import EngineError
from penstock.log.protocol import OrderedLog
from penstock.log.topic import EventTime
from penstock.log.values import Avro
from penstock.model import History, Pipeline, Stream, Table
from penstock.model.duration import duration_text


def ensure_sources(log: OrderedLog, pipeline: Pipeline) -> None:
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
                event_time=_time(relation),
                values=Avro() if relation.value_format == "avro" else None,
            )
        else:
            _check(log, relation)


def _time(relation: Stream | Table) -> EventTime | None:
    if relation.event_time is None:
        return None
    if isinstance(relation, Table):
        return EventTime(relation.event_time)
    return EventTime(relation.event_time, relation.plausible, relation.corrected)


def _check(log: OrderedLog, relation: Stream | Table) -> None:
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
    if isinstance(relation, Stream) and relation.corrected not in (None, topic.corrected):
        raise _misfit(relation, "The topic's event time is not corrected, or otherwise than is declared.")
    if isinstance(relation, Stream) and relation.event_time and relation.plausible != topic.plausible:
        raise _misfit(
            relation,
            f"The topic takes event times as plausible up to {duration_text(topic.plausible)} after the append time; "
            f"declared is {duration_text(relation.plausible)}.",
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
