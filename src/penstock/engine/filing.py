"""Filing: which views can be kept as files, and in which folders their rows lie.

What is written to a file stays: of such a view rows may only come. Its folders are named after values, which must have
names. Both are known when the view is planned.
"""

from collections.abc import Mapping, Sequence

from penstock.engine.columns import schema_of
from penstock.engine.graph import Flow, Graph, Operator
from penstock.engine.nodes import Handle
from penstock.errors import EngineError, did_you_mean
from penstock.model import View
from penstock.schema import Scalar, Schema, type_text

NAMEABLE = ("STRING", "DATE", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT")
HIDDEN = ("_", ".")
OTHERWISE = "Let store be 'table' or 'topic'."
FINAL = "Where windows tell when rows are complete, emit = 'final' shows each once. " + OTHERWISE
UNCORRECTED = "With late = 'keep' or late = 'drop' rows that were shown stay. " + OTHERWISE
TABLES = ("upsert", "bag")
RECORDS = ("source", "static", "evaluated")
CHANGES: Mapping[str, str] = {
    "aggregate": "an aggregate, whose groups change as rows come",
    "sessions": "sessions, which grow as rows come",
    "session": "sessions, which grow as rows come",
    "window": "window functions, which change as rows come",
    "top": "first rows, which change as rows come",
    "join": "a join, whose rows may leave",
    "retained": "a join, whose rows may leave",
    "asof": "an as-of join, whose rows are corrected when nearer ones come",
    "hold": "rows that late ones correct",
}


def check_grows(view: View, graph: Graph, views: Sequence[View]) -> None:
    """Refuses a view of files from which rows may leave; `views` are all of the pipeline."""
    sink, flow = graph.views[view.name]
    if view.options.store != "files" or flow.growing or _is_shown_once(flow, graph, views):
        return
    upstream = graph.upstream(sink)
    cause = _cause([each for each in graph.operators if each.id in upstream])
    raise EngineError(
        f'view "{view.name}" cannot be kept as files, for its rows may change',
        detail=f"It has {_changing(view, cause)}; what is written to a file stays as it is.",
        hint=_hint(view, cause),
        spot=view.spot,
    )


def _is_shown_once(flow: Flow, graph: Graph, views: Sequence[View]) -> bool:
    """Whether all rows are records, or come from operators that show them when they are complete, and never again."""
    final = [each.name for each in views if each.options.emit == "final" and each.options.late != "correct"]
    once = {branch.source.id for name in final if name in graph.views for branch in graph.views[name][1].branches}
    return all(branch.source.id in once or branch.source.kind in RECORDS for branch in flow.branches)


def _cause(upstream: Sequence[Operator]) -> Operator:
    """The operator that takes rows back: a table, or what is nearest to the view."""
    tables = [each for each in upstream if each.kind in TABLES]
    return next(each for each in (*tables, *reversed(upstream)) if each.kind in TABLES or _takes_back(each))


def _takes_back(operator: Operator) -> bool:
    grows = operator.kind == "join" and operator.parts["plan"].kind() in ("inner", "semi")
    return operator.kind in CHANGES and not grows


def _changing(view: View, cause: Operator) -> str:
    if _is_corrected(view):
        return "windows that late rows correct"
    return CHANGES.get(cause.kind) or f'rows of table "{cause.title}", which may be changed or deleted'


def _is_corrected(view: View) -> bool:
    return view.options.emit == "final" and view.options.late == "correct"


def _hint(view: View, cause: Operator) -> str:
    if _is_corrected(view):
        return UNCORRECTED
    if cause.kind in TABLES:
        return f"{OTHERWISE} A table's history only grows, and can be joined as of a time."
    return FINAL if view.options.emit == "changes" else OTHERWISE


def partition_columns(view: View, struct: Handle) -> tuple[str, ...]:
    """The columns of a view's `partition_by` as the view spells them; none where it has none."""
    if view.options.partition_by is None:
        return ()
    schema = schema_of(struct)
    found = tuple(_partition_column(view, name, schema) for name in view.options.partition_by)
    if len(found) == len(schema.names):
        raise _refused(view, "has no column left for its files", "partition_by names them all.", "Leave one out of it.")
    return found


def _partition_column(view: View, name: str, schema: Schema) -> str:
    found = next((each for each in schema.columns if each.name.lower() == name.lower()), None)
    if found is None:
        raise EngineError(
            f'column "{name}" does not exist in view "{view.name}"',
            detail=f"The columns are {', '.join(schema.names)}.",
            hint=did_you_mean(name, schema.names, otherwise="Folders are named after the view's columns."),
            spot=view.partition_spot or view.spot,
        )
    if found.name.startswith(HIDDEN):
        detail = "Readers of files pass over folders whose names begin with _ or a dot."
        raise _refused(view, f'cannot be partitioned by "{found.name}"', detail, "Give the column another name.")
    if not isinstance(found.type, Scalar) or found.type.name not in NAMEABLE:
        raise _refused(
            view,
            f'cannot be partitioned by "{found.name}"',
            f"Its type is {type_text(found.type)}; folders are named by strings, whole numbers, dates and booleans.",
            "Make one of those of it: date(at) AS day, date_format(at, 'HH:mm') AS minute.",
        )
    return found.name


def _refused(view: View, why: str, detail: str, hint: str) -> EngineError:
    return EngineError(f'view "{view.name}" {why}', detail=detail, hint=hint, spot=view.partition_spot or view.spot)
