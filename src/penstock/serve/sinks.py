"""Sinks: the routes of webhooks and e-mails that the views of a pipeline declare, and of their dead letters, which can
be sent again.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from penstock.errors import BeingSent, DamagedNote, ServeError, ViewError
from penstock.log import Entry
from penstock.serve import bodies
from penstock.serve.asking import json_answer
from penstock.serve.browsing import RecordShown
from penstock.serve.pulse import Pulse
from penstock.serve.readers import LettersAsked
from penstock.serve.records import record_fields
from penstock.serve.redriving import BODY, asked
from penstock.serve.source import Resend, Served
from penstock.views.sinks.again import first_waiting, redriven_path, waiting
from penstock.views.sinks.delivering import dead_topic

Kind = Literal["webhook", "email"]
MOST = 100
"""So many letters one request sends: a receiver that is slow takes seconds for each."""


class SinkShown(BaseModel):
    view: str
    sink: Kind
    dead: int = Field(description="Dead letters that were not sent again.")
    letters: str = Field(description="The topic of its dead letters.")


class Sinks(BaseModel):
    sinks: list[SinkShown]


class SinkLetter(BaseModel):
    offset: int
    attempts: int
    reason: str
    record: RecordShown


class SinkLetters(BaseModel):
    view: str
    sink: Kind
    letters: list[SinkLetter]


class Resent(BaseModel):
    view: str
    sink: Kind
    redriven: int
    left: int = Field(description="Dead letters that still wait.")


@dataclass(frozen=True)
class _Sink:
    """One that is declared, the topic of its dead letters, and where it is noted which were sent again."""

    view: str
    kind: Kind
    topic: str
    noted: Path
    resend: Resend


def routes_of(served: Served, pulse: Pulse) -> APIRouter:
    router = APIRouter(tags=["sinks"])

    @router.get("/sinks", response_model=Sinks, responses=bodies.troubles())
    def sinks() -> Response:
        """The webhooks and e-mails of the pipeline's views, and what they have given up."""
        known = _topics(served)
        return json_answer({"sinks": [_shown(served, sink, known) for sink in _sinks(served)]})

    @router.get("/sinks/{view}/{sink}/letters", response_model=SinkLetters, responses=bodies.troubles(404))
    def dead_letters(view: str, sink: str, wanted: Annotated[LettersAsked, Query()]) -> Response:
        """The dead letters of a sink that were not sent again, the oldest first."""
        found = _named(served, view, sink)
        letters = list(islice(_letters(served, found), wanted.limit))
        return json_answer({"view": found.view, "sink": found.kind, "letters": letters})

    @router.post(
        "/sinks/{view}/{sink}/redrive",
        response_model=Resent,
        responses=bodies.troubles(404, 408, 409, 413, 415, 502),
        openapi_extra=BODY,
    )
    async def redrive(view: str, sink: str, request: Request) -> Response:
        """Send dead letters again, each under the id that it had, at most 100 at once; `left` tells how many still
        wait. The first that is not taken ends it. Refused while somebody else sends them.
        """
        wanted = await asked(request)
        found = await run_in_threadpool(_named, served, view, sink)
        sent = await run_in_threadpool(_sent, found, min(wanted.limit or MOST, MOST), lambda: pulse.stopping)
        left = await run_in_threadpool(lambda: _dead(served, found, _topics(served)))
        return json_answer({"view": found.view, "sink": found.kind, "redriven": sent, "left": left})

    return router


def _sinks(served: Served) -> Iterator[_Sink]:
    if served.sinks is None or served.resend is None:
        return
    for view in served.pipeline.views:
        kinds: dict[Kind, object] = {"webhook": view.options.webhook, "email": view.options.email}
        for kind, declared in kinds.items():
            if declared is not None:
                topic = dead_topic(served.pipeline.name, view.name, kind)
                yield _Sink(view.name, kind, topic, redriven_path(served.sinks, view.name, kind), served.resend)


def _named(served: Served, view: str, kind: str) -> _Sink:
    known = list(_sinks(served))
    for sink in known:
        if (sink.view.lower(), sink.kind) == (view.lower(), kind):
            return sink
    names = ", ".join(f"{sink.view}/{sink.kind}" for sink in known)
    raise ServeError(
        f'view "{view}" has no sink "{kind}"',
        detail=f"The sinks are {names}." if names else "There are none.",
        status=404,
    )


def _topics(served: Served) -> set[str]:
    return {topic.name for topic in served.log.topics()}


def _shown(served: Served, sink: _Sink, known: set[str]) -> dict[str, Any]:
    return {"view": sink.view, "sink": sink.kind, "dead": _dead(served, sink, known), "letters": sink.topic}


def _dead(served: Served, sink: _Sink, known: set[str]) -> int:
    return waiting(served.log, sink.topic, sink.noted) if sink.topic in known else 0


def _letters(served: Served, sink: _Sink) -> Iterator[dict[str, Any]]:
    if sink.topic not in _topics(served):
        return
    topic = served.log.topic(sink.topic)
    for entry in served.log.read(sink.topic, start=first_waiting(served.log, sink.topic, sink.noted)):
        yield {**_died(entry), "record": record_fields(topic, entry)}


def _died(entry: Entry) -> dict[str, Any]:
    assert isinstance(entry.value, dict)
    return {"offset": entry.offset, "attempts": entry.value["attempts"], "reason": entry.value["reason"]}


def _sent(sink: _Sink, limit: int, stop: Callable[[], bool]) -> int:
    try:
        return sink.resend(sink.view, sink.kind, limit, stop)
    except (BeingSent, DamagedNote):
        raise
    except ViewError as error:
        raise ServeError(error.primary, detail=error.detail, hint=error.hint, status=502) from error
