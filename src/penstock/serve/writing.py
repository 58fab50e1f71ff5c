"""Writing: the routes of topics."""

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from penstock.errors import ServeError
from penstock.log.protocol import AnyAppended
from penstock.serve import bodies
from penstock.serve.appending import Under, append, topic_of
from penstock.serve.asking import column_fields, json_answer
from penstock.serve.records import shown_topics
from penstock.serve.source import Served
from penstock.text import parsed_json

BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": bodies.Records.model_json_schema()}},
    }
}


def routes_of(served: Served) -> APIRouter:
    router = APIRouter(tags=["topics"])

    @router.get("/topics", response_model=bodies.Topics, responses=bodies.troubles())
    def topics() -> Response:
        """The topics of the pipeline. Those that it reads, its sources, take records."""
        found = [
            {
                "topic": each.name,
                "role": role,
                "relations": [relation.name for relation in served.pipeline.relations if relation.topic == name],
                "key": list(each.key),
                "event_time": each.event_time,
                "partitions": each.partitions,
                "records": served.log.describe(name).records,
                "columns": column_fields(each.schema),
            }
            for name, role in shown_topics(served).items()
            for each in [served.log.topic(name)]
        ]
        return json_answer({"topics": found})

    @router.post(
        "/topics/{topic}",
        response_model=bodies.AppendedShown,
        responses=bodies.troubles(404, 408, 409, 413, 415),
        openapi_extra=BODY,
    )
    async def append_to(topic: str, request: Request) -> Response:
        """Append records, all or none. The answer's position, given as `after`, lets views be read as they are with
        these records in them.
        """
        topic_of(served, topic)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise ServeError(f'the body is "{kind[:60]}"', hint="Send application/json.", status=415)
        wanted = _records(await request.body())
        under = None if wanted.producer is None else Under(wanted.producer, wanted.sequence or 0)
        done = await run_in_threadpool(append, served, topic, wanted.records, under)
        return json_answer(_fields(done, len(wanted.records)))

    return router


def _records(body: bytes) -> bodies.Records:
    try:
        wanted = bodies.Records.model_validate(parsed_json(body.decode()))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the body"
        raise ServeError(
            f"{where} is not as it should be",
            detail=f"{first['msg']}.",
            hint='Send {"records": [{...}, ...]}, and producer and sequence or neither.',
            status=422,
        ) from None
    except (ValueError, ArithmeticError, RecursionError) as error:  # numbers, too, may be longer than can be read
        raise ServeError("the body is not JSON", detail=f"{str(error) or type(error).__name__}."[:200]) from None
    if (wanted.producer is None) != (wanted.sequence is None):
        raise ServeError("a producer and a sequence belong together", hint="Give both, or neither.", status=422)
    return wanted


def _fields(done: AnyAppended, count: int) -> dict[str, object]:
    frame = getattr(done, "frame", None)
    dropped = getattr(done, "dropped", 0)
    return {
        "position": None if frame is None else str(frame),
        "records": count - dropped,
        "dropped": dropped,
        "repeated": done.repeated,
        "spans": [{"partition": each.partition, "offset": each.base, "count": each.count} for each in done.spans],
    }
