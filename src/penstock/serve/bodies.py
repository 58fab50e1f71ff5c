"""Bodies: what requests and answers look like, for the description of the interface."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from penstock.serve.positions import PATTERN

PositionText = Annotated[str, Field(pattern=PATTERN, examples=["1.12", "57"])]
LONGEST_NEXT = 20_000
Words = Annotated[str, Field(min_length=1, max_length=200)]


class Told(BaseModel):
    primary: str = Field(description="What is wrong.")
    detail: str = Field(description="What was found.")
    hint: str = Field(description="What to do.")


class Trouble(BaseModel):
    error: Told


class Fault(Told):
    record: int = Field(description="The number of the record, from 0.")


class Faults(Trouble):
    records: list[Fault] = []


class Stand(BaseModel):
    position: str = Field(description="For `after` and `at`.")
    log: str
    lineage: int
    frame: int
    batch: int | None
    until: int = Field(description="The frame up to which the sources were read, itself not included.")


class Shown(BaseModel):
    name: str
    type: str
    nullable: bool


class ViewShown(BaseModel):
    name: str
    key: list[str] = Field(description="Empty: it is a bag of rows.")
    kept: Literal["table", "topic", "files"]
    columns: list[Shown]


class Views(BaseModel):
    pipeline: str
    position: Stand | None
    views: list[ViewShown]


class Rows(BaseModel):
    view: str
    position: Stand
    watermarks: dict[str, str] = Field(description="How far each stream had come, where that is known.")
    rows: list[dict[str, Any]]
    next: str | None = Field(description="Where the next page begins: give it as `next`.")


class Row(BaseModel):
    view: str
    position: Stand
    row: dict[str, Any]


class TopicShown(BaseModel):
    topic: str
    role: Literal["source", "changes", "late", "letters"] = Field(description="Only a source takes records.")
    relations: list[str] = Field(description="The streams and tables that are read from it.")
    key: list[str]
    event_time: str | None
    partitions: int
    records: int = Field(description="How many are kept.")
    columns: list[Shown]


class Topics(BaseModel):
    topics: list[TopicShown]


class Records(BaseModel):
    """Records to append, all or none; with a producer and a sequence once, however often they are sent."""

    model_config = ConfigDict(extra="forbid", strict=True)

    records: list[dict[str, Any]] = Field(min_length=1, max_length=100_000)
    producer: Words | None = None
    sequence: Annotated[int, Field(ge=0, le=(1 << 63) - 1)] | None = None


class SpanShown(BaseModel):
    partition: int
    offset: int
    count: int


class AppendedShown(BaseModel):
    position: str | None = Field(description="Give it as `after` to read what was written.")
    records: int
    dropped: int = Field(description="Records left out, because the topic is bounded and full.")
    repeated: bool
    spans: list[SpanShown]


class Health(BaseModel):
    status: Literal["ok"]


class Stored(BaseModel):
    reachable: bool = Field(description="Whether it answered within the last seconds.")
    lag: int | None = Field(description="Frames that it does not know yet; null where that is not known.")


class Ready(BaseModel):
    status: Literal["ready"]
    position: Stand
    lag: int = Field(description="Frames that the views do not know yet.")
    store: Stored | None = Field(description="The pipeline's store, where that is PostgreSQL or Redis.")


class RowsAsked(BaseModel):
    """What can be asked of rows."""

    model_config = ConfigDict(extra="forbid")

    where: str = Field("", max_length=10_000, description="A condition in SQL: `city = 'Bern' AND spend > 100`.")
    order: list[Annotated[str, Field(min_length=1, max_length=300)]] = Field(
        [], max_length=20, description="A column, or `column desc`; repeat it for more."
    )
    limit: int = Field(1_000, ge=0, description="At most so many rows; how many at most, the server says.")
    next: str | None = Field(None, max_length=LONGEST_NEXT, description="Where the page before ended.")
    format: Literal["json", "csv", "arrow"] | None = Field(None, description="Stronger than the header Accept.")
    after: PositionText | None = Field(None, description="Wait until the view has come to this position.")
    at: PositionText | None = Field(None, description="The view as it was at this position.")
    timeout: float | None = Field(None, gt=0, le=3600, description="Seconds to wait, or to look for rows.")


class RowAsked(BaseModel):
    model_config = ConfigDict(extra="forbid")

    key: list[str] = Field(min_length=1, max_length=50, description="The key: a value for each of its columns.")
    after: PositionText | None = Field(None, description="Wait until the view has come to this position.")
    timeout: float | None = Field(None, gt=0, le=3600, description="Seconds to wait.")


class ChangesAsked(BaseModel):
    model_config = ConfigDict(extra="forbid")

    start: PositionText | None = Field(
        None, alias="from", description="The changes after this position; without it those from now on."
    )


def troubles(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How a route can fail, besides those in which all can."""
    words = {
        400: "What was asked makes no sense.",
        401: "A token is needed.",
        403: "This token is not good for it, or the server was called by another name.",
        404: "It does not exist.",
        406: "Rows cannot be given in such a form.",
        408: "The body did not come.",
        409: "Something else was appended under this sequence, or somebody else is at it.",
        410: "It is not kept any more.",
        413: "The body is too large.",
        415: "The body is not JSON.",
        422: "A parameter, or a record, is not as it should be.",
        429: "That was too often.",
        500: "The server failed.",
        502: "Who should get it does not take it.",
        503: "The store, or the log, cannot be used now.",
        504: "It took too long.",
    }
    kinds = {422: Faults}
    wanted = sorted({*statuses, 400, 401, 403, 422, 429, 500, 503})
    return {status: {"model": kinds.get(status, Trouble), "description": words[status]} for status in wanted}
