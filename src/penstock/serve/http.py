"""HTTP: the application, put together. What it answers is described at /openapi.json."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry
from starlette.exceptions import HTTPException
from starlette.responses import Response

from penstock.errors import PenstockError, ServeError
from penstock.serve import asking, bodies, browsing, readers, sinks, troubles, watching, writing
from penstock.serve.feed import Feeds
from penstock.serve.gate import OPEN, Gate
from penstock.serve.metrics import Ran, Requests, Standing, exposed
from penstock.serve.outward import Outward
from penstock.serve.pages import page_routes
from penstock.serve.past import Past
from penstock.serve.positions import fields_of
from penstock.serve.pulse import Pulse
from penstock.serve.quick import quick_row
from penstock.serve.settings import Settings
from penstock.serve.source import Served
from penstock.serve.telling import Tell

ABOUT = """The views of a pipeline: their rows, and their changes as they come. Answers carry their position;
an append tells one too, and `after` waits until a view has come there. Errors are objects with `primary`, `detail` and
`hint`."""


@dataclass(frozen=True)
class Web:
    """The application, and the pulse that ends its streams."""

    app: FastAPI
    pulse: Pulse


def web_of(served: Served, settings: Settings, *, tell: Tell | None = None) -> Web:
    """The application; `tell` hears of every request."""
    registry = CollectorRegistry()
    pulse = Pulse(served)
    past = Past(served)
    feeds = Feeds(served, pulse, settings.limits.followers)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        beating = asyncio.create_task(pulse.run())
        yield
        pulse.stop()
        await beating
        past.close()

    app = FastAPI(title="Penstock", description=ABOUT, version="1", docs_url=None, redoc_url=None, lifespan=lifespan)
    views = asking.Views(served, pulse, past, feeds, settings.limits)
    app.router.routes.append(quick_row(views))
    app.include_router(asking.routes_of(views))
    app.include_router(writing.routes_of(served))
    app.include_router(browsing.routes_of(served))
    app.include_router(readers.routes_of(served))
    app.include_router(sinks.routes_of(served, pulse))
    app.include_router(watching.routes_of(served))
    app.include_router(_state(served, registry))
    app.router.routes.extend(page_routes())
    app.add_exception_handler(PenstockError, troubles.told)
    app.add_exception_handler(RequestValidationError, troubles.misasked)
    app.add_exception_handler(HTTPException, troubles.lost)
    registry.register(Standing(served, lambda: feeds.followers))
    registry.register(Ran(served))
    registry.register(Outward(served))
    if settings.tokens:
        app.openapi = partial(_with_tokens, app.openapi)  # type: ignore[method-assign]
    app.add_middleware(Gate, settings=settings, requests=Requests(registry), tell=tell)
    return Web(app, pulse)


def _with_tokens(described: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The description, with that a token is needed, and where it is not."""
    found = described()
    found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, methods in found["paths"].items():
        for operation in methods.values():
            operation["security"] = [] if path in OPEN else [{"token": []}]
    return found


def _stored(served: Served) -> dict[str, object] | None:
    """How the pipeline's store stands where it is not what is served."""
    if served.elsewhere is None:
        return None
    stand = served.elsewhere.stand()
    lag = None if stand.position is None else served.lag_elsewhere(stand.position)
    return {"reachable": stand.reachable, "lag": lag}


def _state(served: Served, registry: CollectorRegistry) -> APIRouter:
    router = APIRouter(tags=["state"])

    @router.get("/health", response_model=bodies.Health)
    async def health() -> Response:
        """The server answers."""
        return asking.json_answer({"status": "ok"})

    @router.get("/ready", response_model=bodies.Ready, responses=bodies.troubles(503))
    def ready() -> Response:
        """There are answers: the store and the log can be read, and belong together. Of a store on a server it tells
        how that stands; what is served does not depend on it.
        """
        position, lag = served.position(), served.lag()
        if position is None:
            raise ServeError("there are no answers yet", hint="Run the pipeline: penstock run", status=503)
        if position.log != served.log.identity:
            raise ServeError(
                "the store is not one of this log",
                detail=f"It was filled from log {position.log}; this one is {served.log.identity}.",
                status=503,
            )
        store = _stored(served)
        return asking.json_answer({"status": "ready", "position": fields_of(position), "lag": lag, "store": store})

    @router.get(
        "/metrics",
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **bodies.troubles()},
        response_class=Response,
    )
    def metrics() -> Response:
        """For Prometheus."""
        return Response(exposed(registry), media_type=CONTENT_TYPE_LATEST)

    return router
