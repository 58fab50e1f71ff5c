"""Watching: the routes that show a run. What they tell is in the lineage's diary, which a run writes, in this process
or another; without a run it is what the last one wrote.
"""

import fcntl
import os
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from penstock.errors import ServeError
from penstock.serve import bodies
from penstock.serve.asking import json_answer
from penstock.serve.diary import KEPT, batches_in, lineage_with_plan, plan_in
from penstock.serve.source import Served


class Node(BaseModel):
    id: str
    kind: Literal["source", "operator", "view"]
    title: str
    detail: str
    level: int | None = Field(description="Counted from the views, which are on 0; sources have none.")
    state: str | None = Field(description="What bounds the state of an operator.")
    warning: str | None


class PipelineShown(BaseModel):
    name: str
    log: str
    lineage: int
    running: bool
    nodes: list[Node]
    edges: list[tuple[str, str]] = Field(description="Which node feeds which.")


class Batch(BaseModel):
    batch: int
    frame: int | None
    at: str | None = Field(description="When it was committed.")
    seconds: float
    phases: dict[str, float] = Field(description="Where the time went, in seconds.")
    records: dict[str, int] = Field(description="What was read of each source.")
    changes: dict[str, int] = Field(description="How many changes each view got.")
    late: dict[str, int] = Field(description="Rows that came too late, of each view.")
    letters: int = Field(description="Dead letters.")
    watermarks: dict[str, str] = Field(description="How far each stream had come; told about twice a second.")
    state_bytes: int | None


class Batches(BaseModel):
    batches: list[Batch]
    lag: int = Field(description="Frames that no batch has read yet.")


class BatchesAsked(BaseModel):
    model_config = ConfigDict(extra="forbid")

    limit: int = Field(200, ge=1, le=KEPT, description="At most so many, the newest.")


def routes_of(served: Served) -> APIRouter:
    router = APIRouter(tags=["run"])

    @router.get("/pipeline", response_model=PipelineShown, responses=bodies.troubles(404))
    def pipeline() -> Response:
        """The plan: sources, operators and views, and which feeds which; whether a run is at work."""
        folder = lineage_with_plan(served.home)
        plan = None if folder is None else plan_in(folder)
        if plan is None:
            raise ServeError(
                f'the plan of pipeline "{served.pipeline.name}" is not known yet',
                detail="A run writes it down when it begins.",
                hint="Run it: penstock run",
                status=404,
            )
        shown = {name: plan[name] for name in PipelineShown.model_fields if name != "running"}
        return json_answer({**shown, "running": is_running(served.home)})

    @router.get("/batches", response_model=Batches, responses=bodies.troubles())
    def batches(wanted: Annotated[BatchesAsked, Query()]) -> Response:
        """The last batches, the oldest first: what each read and changed, and where its time went."""
        folder = lineage_with_plan(served.home)
        found = [] if folder is None else batches_in(folder, wanted.limit)
        lag = served.lag_after(found[-1]["until"] if found else 0)
        return json_answer(
            {"batches": [{name: each[name] for name in Batch.model_fields} for each in found], "lag": lag}
        )

    return router


def is_running(home: Path) -> bool:
    """Whether a process works on the pipeline. Who begins to just now tries again at once."""
    try:
        file = os.open(home / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
