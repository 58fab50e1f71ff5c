"""Browsing: the route of a topic's records."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from penstock.serve import bodies
from penstock.serve.asking import json_answer
from penstock.serve.records import PLACE, Seek, page, record_fields, shown_topic
from penstock.serve.source import Served

MOST = 1_000


class RecordShown(BaseModel):
    partition: int
    offset: int
    place: str = Field(description="Its frame and its number there: one order over all topics.")
    appended_at: str
    time: str | None = Field(description="The event time.")
    key: Any = Field(description="Of a raw topic text, or `base64`.")
    values: Any = Field(description="Of a raw topic text, or `base64`.")
    deleted: bool
    replaces: Any
    headers: dict[str, Any]


class Bounds(BaseModel):
    partition: int
    begin: int = Field(description="The first offset that is kept.")
    end: int = Field(description="The next offset.")


class RecordsShown(BaseModel):
    topic: str
    partitions: list[Bounds]
    records: list[RecordShown]
    next: str | None = Field(description="Where the next page begins: give it as `next`.")


class RecordsAsked(BaseModel):
    model_config = ConfigDict(extra="forbid")

    start: int | None = Field(
        None, alias="from", ge=-MOST, le=(1 << 62), description="An offset; a negative one counts from the end."
    )
    time: str | None = Field(None, max_length=100, description="What was appended at this time or later.")
    next: str | None = Field(None, pattern=f"^{PLACE.pattern}$", description="Where the page before ended.")
    partition: int | None = Field(None, ge=0, le=(1 << 31), description="Only this one.")
    limit: int = Field(50, ge=1, le=MOST, description="At most so many records.")


def routes_of(served: Served) -> APIRouter:
    router = APIRouter(tags=["topics"])

    @router.get(
        "/topics/{topic}/records", response_model=RecordsShown, responses=bodies.troubles(404, 410), name="records"
    )
    def records(topic: str, wanted: Annotated[RecordsAsked, Query()]) -> Response:
        """The records of a topic as they stand in the log, from an offset or a time on, page by page."""
        declared = shown_topic(served, topic)
        seek = Seek(wanted.limit, wanted.start, wanted.time, wanted.next, wanted.partition)
        found = page(served.log, declared, seek)
        return json_answer(
            {
                "topic": declared.name,
                "partitions": bounds(served, declared.name),
                "records": [record_fields(declared, entry) for entry in found.entries],
                "next": found.next,
            }
        )

    return router


def bounds(served: Served, topic: str) -> list[dict[str, int]]:
    found = served.log.describe(topic).partitions
    return [{"partition": each.partition, "begin": each.begin, "end": each.end} for each in found]
