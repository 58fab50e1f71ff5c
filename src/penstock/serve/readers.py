"""Readers: the routes of groups and queues over the topics of a pipeline, and of dead letters, which can be delivered
again. A log on Kafka has Kafka's own groups; they are not shown.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from penstock.errors import ServeError, did_you_mean
from penstock.log import Entry, Log
from penstock.log.consumers import Consumers, Group, Queue
from penstock.log.consumers.dead import HEADERS, dead_topic
from penstock.model.duration import duration_text
from penstock.serve import bodies
from penstock.serve.asking import json_answer
from penstock.serve.browsing import RecordShown
from penstock.serve.records import record_fields, shown_topics
from penstock.serve.redriving import BODY, asked
from penstock.serve.source import Served

MOST = 1_000


class Behind(BaseModel):
    topic: str
    partition: int
    committed: int
    end: int
    lag: int
    member: str | None


class GroupShown(BaseModel):
    name: str
    members: list[str]
    lag: int = Field(description="Records that it has not read yet.")
    partitions: list[Behind]


class Groups(BaseModel):
    groups: list[GroupShown]


class QueueShown(BaseModel):
    name: str
    topic: str
    waiting: int
    in_flight: int = Field(description="With workers.")
    dead: int = Field(description="Dead letters that were not delivered again.")
    skipped: int
    visibility: str
    deliveries: int = Field(description="After so many a message is a dead letter.")
    letters: str = Field(description="The topic of its dead letters.")


class Queues(BaseModel):
    queues: list[QueueShown]


class Letter(BaseModel):
    topic: str
    partition: int
    offset: int
    deliveries: int
    reason: str
    record: RecordShown


class Letters(BaseModel):
    queue: str
    letters: list[Letter]


class LettersAsked(BaseModel):
    model_config = ConfigDict(extra="forbid")

    limit: int = Field(50, ge=1, le=MOST, description="At most so many, from the oldest on.")


class Redriven(BaseModel):
    queue: str
    redriven: int


def routes_of(served: Served) -> APIRouter:
    router = APIRouter(tags=["readers"])

    @router.get("/groups", response_model=Groups, responses=bodies.troubles())
    def groups() -> Response:
        """The groups that read topics of the pipeline, and how far each has come."""
        known, consumers = set(shown_topics(served)), _consumers(served)
        found = [] if consumers is None else [_group(each, known) for each in consumers.groups()]
        return json_answer({"groups": [each for each in found if each["partitions"]]})

    @router.get("/queues", response_model=Queues, responses=bodies.troubles())
    def queues() -> Response:
        """The queues over topics of the pipeline: what waits, what is with workers, what has died."""
        return json_answer({"queues": [_queue(each) for each in _queues(served).values()]})

    @router.get("/queues/{queue}/letters", response_model=Letters, responses=bodies.troubles(404))
    def dead_letters(queue: str, wanted: Annotated[LettersAsked, Query()]) -> Response:
        """The dead letters of a queue that were not delivered again, the oldest first."""
        found = _named(served, queue)
        topic = served.log.topic(dead_topic(found.name))
        letters = found.letters(limit=wanted.limit)
        shown = [{**_died(letter), "record": record_fields(topic, letter)} for letter in letters]
        return json_answer({"queue": found.name, "letters": shown})

    @router.post(
        "/queues/{queue}/redrive",
        response_model=Redriven,
        responses=bodies.troubles(404, 408, 413, 415),
        openapi_extra=BODY,
    )
    async def redrive(queue: str, request: Request) -> Response:
        """Deliver dead letters again, as if for the first time."""
        wanted = await asked(request)
        found = await run_in_threadpool(_named, served, queue)
        moved = await run_in_threadpool(lambda: found.redrive(limit=wanted.limit))
        return json_answer({"queue": found.name, "redriven": moved})

    return router


def _consumers(served: Served) -> Consumers | None:
    """Those of a log in a folder."""
    return served.log.consumers if isinstance(served.log, Log) else None


def _queues(served: Served) -> dict[str, Queue]:
    known, consumers = shown_topics(served), _consumers(served)
    return {} if consumers is None else {each.name: each for each in consumers.queues() if each.topic in known}


def _named(served: Served, name: str) -> Queue:
    known = _queues(served)
    if name not in known:
        raise ServeError(
            f'queue "{name}" is not one over a topic of pipeline "{served.pipeline.name}"',
            detail=f"The queues are {', '.join(known)}." if known else "There are none.",
            hint=did_you_mean(name, known),
            status=404,
        )
    return known[name]


def _group(group: Group, topics: set[str]) -> dict[str, Any]:
    lags = [each for each in group.lag() if each.topic in topics]
    return {
        "name": group.name,
        "members": sorted(group.members()),
        "lag": sum(each.records for each in lags),
        "partitions": [
            {
                "topic": each.topic,
                "partition": each.partition,
                "committed": each.committed,
                "end": each.end,
                "lag": each.records,
                "member": each.member,
            }
            for each in lags
        ],
    }


def _queue(queue: Queue) -> dict[str, Any]:
    found = queue.describe()
    return {
        "name": found.name,
        "topic": found.topic,
        "waiting": found.waiting,
        "in_flight": found.in_flight,
        "dead": found.dead,
        "skipped": found.skipped,
        "visibility": duration_text(found.delivering.visibility),
        "deliveries": found.delivering.deliveries,
        "letters": dead_topic(found.name),
    }


def _died(entry: Entry) -> dict[str, Any]:
    """What the headers of a dead letter tell of its message."""
    said = {name: entry.headers[HEADERS + name].decode(errors="replace") for name in ("topic", "reason")}
    numbers = {name: int(entry.headers[HEADERS + name]) for name in ("partition", "offset", "deliveries")}
    return {**said, **numbers}
