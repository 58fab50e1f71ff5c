"""Redriving: what a request says that wants dead letters to go out again, of queues and of sinks."""

import json
from typing import Annotated

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from penstock.errors import ServeError
from penstock.text import parsed_json


class Redrive(BaseModel):
    """How many dead letters are delivered again, from the oldest on; without a limit all of a queue, 100 of a sink."""

    model_config = ConfigDict(extra="forbid", strict=True)

    limit: Annotated[int, Field(ge=1, le=(1 << 62))] | None = None


# A page from elsewhere cannot send such a body without asking first.
BODY = {"requestBody": {"required": True, "content": {"application/json": {"schema": Redrive.model_json_schema()}}}}


async def asked(request: Request) -> Redrive:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ServeError(f'the body is "{kind[:60]}"', hint="Send application/json.", status=415)
    return _parsed(await request.body())


def _parsed(body: bytes) -> Redrive:
    try:
        return Redrive.model_validate(parsed_json(body.decode()))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ServeError("the body is not JSON", detail=f"{error}."[:200], status=400) from None
    except ValidationError as error:
        said = f"{error.errors()[0]['msg']}."
        raise ServeError(
            "the body is not as it should be", detail=said, hint='Send {"limit": 5} or {}.', status=422
        ) from None
