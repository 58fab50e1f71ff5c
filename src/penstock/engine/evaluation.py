"""Evaluation: the streams of sources whose rows have what Python functions give, as Spark's own plans."""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from penstock.engine.graph import Branch, Graph, Operator
from penstock.engine.nodes import Handle

BY_NAME = ("source", "upsert", "bag")
"""Whose rows have the columns that views asked for, found by their names; all others have theirs in order."""


def evaluated_streams(spark: SparkSession, graph: Graph, streams: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """By name the streams of all sources on whose rows functions are called, from those that are read."""
    read = {graph.sources[name].id: stream._jdf for name, stream in streams.items() if name in graph.sources}
    rows, found = dict(read), {}
    for name, source in graph.sources.items():
        if source.kind == "evaluated":
            rows[source.id] = _rows(graph, source, rows[source.parts["base"].id])
            found[name] = DataFrame(_entering(graph, source, read, rows[source.id]), spark)
    return found


def _rows(graph: Graph, source: Operator, rows: Handle) -> Handle:
    """The source's rows: those of its base that pass, with what the functions give."""
    door, handles = graph.door, graph.handles
    branch, (calls, results) = source.parts["branch"], source.parts["new"]
    if "table" in source.parts and source.parts["base"] is source.parts["root"]:
        rows = door.present(rows)
    rows = door.known(rows, handles(named_row(branch, list(door.list(rows.queryExecution().analyzed().output())))))
    for maker in branch.makers:
        rows = _passing(graph, rows, maker.filters)
        rows = door.generated(rows, maker.generator, maker.outer, handles([column.handle for column in maker.made]))
    rows = _passing(graph, rows, branch.filters)
    kept = [column.handle for column in source.row[: -len(results)]]
    made = [door.standing(call, result.handle) for call, result in zip(calls, results, strict=True)]
    return door.computed(rows, handles([*kept, *made]))


def _passing(graph: Graph, rows: Handle, filters: Sequence[Handle]) -> Handle:
    return graph.door.passing(rows, graph.door.conjunction(graph.handles(filters))) if filters else rows


def _entering(graph: Graph, source: Operator, read: Mapping[int, Handle], rows: Handle) -> Handle:
    """A table must hear of every record, also of one whose row does not pass."""
    if "table" not in source.parts:
        return rows
    return graph.door.outlived(read[source.parts["root"].id], rows, graph.handles(source.parts["table"].key))


def named_row(branch: Branch, row: Sequence[Handle]) -> list[Handle]:
    """A source's row, or an operator's, under the names of the branch's reader; what the reader does not know of it
    stays as it is.
    """
    if branch.source.kind in BY_NAME:
        mine = {column.name: column.handle for column in branch.columns}
        return [mine.get(attribute.name(), attribute) for attribute in row]
    known = [column.handle for column in branch.columns]
    return [*known, *row[len(known) :]]
