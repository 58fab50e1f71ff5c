"""Hidden columns: the stamps that the log gives to every record, and the marks that a record may carry."""

from penstock.log.topic import Topic
from penstock.schema import Map, Scalar, Struct, Type

STAMPS = ("_partition", "_offset", "_place", "_appended_at")
NO_PLACE = tuple(each for each in STAMPS if each != "_place")
"""On Kafka there is no order of all topics."""
MARKS = ("_deleted", "_headers", "_replaces")
TYPES: dict[str, Type] = {
    "_partition": Scalar("INT"),
    "_offset": Scalar("BIGINT"),
    "_place": Scalar("BIGINT"),
    "_appended_at": Scalar("TIMESTAMP"),
    "_deleted": Scalar("BOOLEAN"),
    "_headers": Map(Scalar("STRING"), Scalar("BINARY")),
}


def type_of(topic: Topic, name: str) -> Type:
    """The type of a column of the topic, hidden or not."""
    if name == "_replaces":
        return Struct(topic.schema.columns)
    return TYPES.get(name) or topic.schema.column(name).type
