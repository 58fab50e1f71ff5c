"""Asking: the routes of views. Rows in pages, the row of a key, changes as they come."""

import base64
import binascii
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from penstock.errors import ServeError, ViewError
from penstock.log import Place
from penstock.schema import Schema, type_text
from penstock.serve import bodies
from penstock.serve.feed import Feed, Feeds, start_event
from penstock.serve.forms import TYPES, Form, arrow_of, csv_of, fields, form_of, json_text
from penstock.serve.past import Past
from penstock.serve.positions import Asked, asked, fields_of, place_after, text_of
from penstock.serve.pulse import Pulse
from penstock.serve.settings import Limits
from penstock.serve.source import Served
from penstock.views import Position, ViewReader
from penstock.views.query import Answer
from penstock.views.step import View

BEAT = b": still here\n\n"
TEXT = {"schema": {"type": "string"}}
EVENTS = {"description": "Events `change` and `batch`.", "content": {"text/event-stream": TEXT}}
FOLLOWED: dict[int | str, dict[str, Any]] = {200: EVENTS, **bodies.troubles(404, 410)}
PAGES: dict[int | str, dict[str, Any]] = {
    200: {
        "model": bodies.Rows,
        "description": "The rows.",
        "content": {kind: TEXT for kind in TYPES.values() if kind != "application/json"},
    }
}


@dataclass(frozen=True)
class Views:
    """What the routes of views work with."""

    served: Served
    pulse: Pulse
    past: Past
    feeds: Feeds
    limits: Limits

    async def wait(self, after: str | None, timeout: float | None) -> None:
        if after is not None:
            await self.pulse.reached(asked(after), self.seconds(timeout))

    def seconds(self, timeout: float | None) -> float:
        return self.limits.seconds if timeout is None else min(timeout, self.limits.seconds)

    def rows(self, name: str, wanted: bodies.RowsAsked) -> Answer:
        if wanted.limit > self.limits.rows:
            raise ServeError(f"at most {self.limits.rows:,} rows are given at once", hint="Ask page by page.")
        view, seconds = self.served.view(name), self.seconds(wanted.timeout)
        return self._reader(view, None if wanted.at is None else asked(wanted.at), seconds).rows(
            view.name,
            where=wanted.where,
            order=wanted.order or None,  # by the key that it has there: the log may know another lineage already
            limit=wanted.limit,
            after=None if wanted.next is None else _unwrapped(wanted.next),
            seconds=seconds,
        )

    def _reader(self, view: View, at: Asked | None, seconds: float) -> ViewReader:
        if at is None and view.kept == "table" and self.served.position() is not None:
            return self.served.reader
        return self.past.reader(view.name, at, seconds)


def view_fields(view: View) -> dict[str, object]:
    return {"name": view.name, "key": list(view.key), "kept": view.kept, "columns": column_fields(view.schema)}


def column_fields(schema: Schema) -> list[dict[str, object]]:
    return [{"name": each.name, "type": type_text(each.type), "nullable": each.nullable} for each in schema.columns]


def routes_of(views: Views) -> APIRouter:
    router = APIRouter(tags=["views"])

    @router.get("/views", response_model=bodies.Views, responses=bodies.troubles(404))
    def all_views() -> Response:
        """The views, their keys and columns, and the position at which they stand."""
        position = views.served.position()
        found = [view_fields(view) for view in views.served.lineage().views]
        stands = None if position is None else fields_of(position)
        return json_answer({"pipeline": views.served.pipeline.name, "position": stands, "views": found})

    @router.get("/views/{view}", response_model=bodies.ViewShown, responses=bodies.troubles(404))
    def one_view(view: str) -> Response:
        """A view: its key and its columns."""
        return json_answer(view_fields(views.served.view(view)))

    @router.get("/views/{view}/rows", responses={**PAGES, **bodies.troubles(404, 406, 410, 504)})
    async def rows(
        view: str, wanted: Annotated[bodies.RowsAsked, Query()], accept: Annotated[str | None, Header()] = None
    ) -> Response:
        """The rows of a view: by a condition, in an order, page by page. All rows of a page are of one position."""
        form = form_of(wanted.format, accept)
        await views.wait(wanted.after, wanted.timeout)
        return await run_in_threadpool(rows_answer, views, view, form, wanted)

    # Described here, answered by quick.py.
    @router.get("/views/{view}/row", response_model=bodies.Row, responses=bodies.troubles(404, 504))
    async def row(view: str, wanted: Annotated[bodies.RowAsked, Query()]) -> Response:
        """The row under a key."""
        await views.wait(wanted.after, wanted.timeout)
        return row_answer(views.served, view, wanted.key)

    @router.get("/views/{view}/changes", response_class=StreamingResponse, responses=FOLLOWED)
    async def changes(
        view: str,
        wanted: Annotated[bodies.ChangesAsked, Query()],
        last_event_id: Annotated[str | None, Header(pattern="^[0-9]{1,15}(:[0-9]{1,15})?$")] = None,
    ) -> Response:
        """Every change of a view as it comes, as server-sent events. Who comes back with the header Last-Event-ID goes
        on after that event: nothing is missed, nothing comes twice.
        """
        start = _start(views.served, wanted.start, last_event_id)
        feed = views.feeds.feed(views.served.view(view).name)
        await feed.check(start)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(_followed(views.feeds, feed, start), headers=headers, media_type="text/event-stream")

    return router


def _start(served: Served, given: str | None, last: str | None) -> Place:
    if last is None and given is None:
        return Place(served.log.mark().next_frame)
    start = place_after(last) if last is not None else Place(asked(given or "").frame + 1)
    served.check_exists(Asked(max(0, start.frame - (start.index == 0))))
    return start


async def _followed(feeds: Feeds, feed: Feed, start: Place) -> AsyncIterator[bytes]:
    with feeds.following(feed):
        if start.index == 0 and start.frame:
            yield start_event(start)
        async for events in feed.follow(start):
            yield events or BEAT


def json_answer(body: object, headers: dict[str, str] | None = None) -> Response:
    text = (json_text(body) + "\n").encode(errors="backslashreplace")  # terminals like lines that end
    return Response(text, headers=headers, media_type="application/json")


def stand_headers(position: Position) -> dict[str, str]:
    batch = {} if position.batch is None else {"penstock-batch": str(position.batch)}
    return {"penstock-position": text_of(position), "penstock-lineage": str(position.lineage), **batch}


def rows_answer(views: Views, view: str, form: Form, wanted: bodies.RowsAsked) -> Response:
    # Before the rows are read: the watermark of a moment later would promise what they do not hold yet.
    known = {} if wanted.at else views.served.watermarks()
    times = {name: time.isoformat() for name, time in known.items()}
    answer = views.rows(view, wanted)
    following = _following(answer)
    headers = stand_headers(answer.position)
    headers |= {} if following is None else {"penstock-next": following}
    headers |= {"penstock-watermark": ", ".join(f"{name}={time}" for name, time in times.items())} if times else {}
    if form != "json":
        data = csv_of(answer) if form == "csv" else arrow_of(answer)
        return Response(data, headers=headers, media_type=TYPES[form])
    show = fields(answer.view.schema)
    body = {
        "view": answer.view.name,
        "position": fields_of(answer.position),
        "watermarks": times,
        "rows": [show(row) for row in answer],
        "next": following,
    }
    return json_answer(body, headers)


def row_answer(served: Served, view: str, key: list[str]) -> Response:
    try:
        answer = served.lookup.row(view, key)
    except ViewError:
        if served.view(view).kept != "table":
            raise ServeError(f'view "{view}" is not kept as a table', hint="Ask for its rows by a condition.") from None
        raise
    found = list(answer)
    if not found:
        raise ServeError(
            f'view "{answer.view.name}" has no row under this key',
            detail=f"It is {', '.join(answer.view.key)} = {', '.join(key)[:200]}; the position is "
            f"{text_of(answer.position)}.",
            status=404,
        )
    row = fields(answer.view.schema)(found[0])
    body = {"view": answer.view.name, "position": fields_of(answer.position), "row": row}
    return json_answer(body, stand_headers(answer.position))


def _following(answer: Answer) -> str | None:
    """Where the next page begins, as text that an address and a header have room for."""
    if answer.next is None:
        return None
    wrapped = base64.urlsafe_b64encode(answer.next.encode()).decode()
    if len(wrapped) > bodies.LONGEST_NEXT:
        raise ServeError(
            f'the rows of view "{answer.view.name}" cannot be given page by page in this order',
            detail="A page would end with a value that is too long to go on from.",
            hint="Order by other columns, or ask for all rows at once by a larger `limit`.",
        )
    return wrapped


def _unwrapped(text: str) -> str:
    try:
        return base64.b64decode(text.encode(), altchars=b"-_", validate=True).decode() or "nowhere"
    except (binascii.Error, ValueError):
        raise ServeError("this is not where a page has ended", hint="Give what `next` said, as it is.") from None
