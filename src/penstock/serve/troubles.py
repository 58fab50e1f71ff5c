"""Troubles: errors as answers in JSON, with what is wrong, what was found and what to do."""

from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from penstock.errors import (
    BeingSent,
    DamagedLog,
    DamagedNote,
    LogError,
    PenstockError,
    RecordsGone,
    SchemaError,
    ServeError,
    StoreUnavailable,
    TooSlow,
    TopicFull,
    ViewError,
)
from penstock.serve.appending import Unfitting
from penstock.serve.forms import json_text

STATUS: tuple[tuple[type[PenstockError], int], ...] = (
    (StoreUnavailable, 503),
    (TooSlow, 504),
    (TopicFull, 503),
    (RecordsGone, 410),
    (DamagedLog, 500),
    (LogError, 400),
    (SchemaError, 422),
    (BeingSent, 409),
    (DamagedNote, 500),
    (ViewError, 400),
)
"""The first that fits."""
EXTRA = {401: {"www-authenticate": "Bearer"}, 429: {"retry-after": "1"}, 503: {"retry-after": "1"}}


def status_of(error: PenstockError) -> int:
    if isinstance(error, ServeError):
        return error.status
    return next((status for kind, status in STATUS if isinstance(error, kind)), 500)


def answer_to(error: PenstockError, headers: dict[str, str] | None = None) -> Response:
    body: dict[str, Any] = {"error": _fields(error)}
    if isinstance(error, Unfitting):
        body["records"] = [{"record": number, **_fields(fault)} for number, fault in error.faults]
    status = status_of(error)
    text = (json_text(body) + "\n").encode(errors="backslashreplace")
    return Response(text, status, {**EXTRA.get(status, {}), **(headers or {})}, media_type="application/json")


def _fields(error: PenstockError) -> dict[str, str]:
    return {"primary": error.primary, "detail": error.detail, "hint": error.hint}


async def told(_request: Request, error: Exception) -> Response:
    """What Penstock raises on purpose."""
    assert isinstance(error, PenstockError)
    return answer_to(error)


async def misasked(_request: Request, error: Exception) -> Response:
    """A parameter that is not as the description says."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return answer_to(ServeError(f"{where} is not as it should be", detail=f"{first['msg']}.", status=422))


async def lost(request: Request, error: Exception) -> Response:
    """A path or a method that does not exist."""
    assert isinstance(error, HTTPException)
    about = f"{request.method} {request.url.path[:80]}: {error.detail}".lower()
    found = ServeError(about, hint="What there is, /openapi.json describes.", status=error.status_code)
    return answer_to(found, dict(error.headers or {}))
