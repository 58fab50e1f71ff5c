"""Random pipelines and what is fed to them: views of everything that the engine supports, over three relations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from penstock.log import Record

RELATIONS = """
    CREATE STREAM s (k BIGINT, v DECIMAL(10,2), x DOUBLE, t STRING, b BOOLEAN);
    CREATE TABLE d (id BIGINT PRIMARY KEY, k BIGINT, v DECIMAL(10,2), x DOUBLE, t STRING, b BOOLEAN);
    CREATE TABLE g (k BIGINT, v DECIMAL(10,2), x DOUBLE, t STRING, b BOOLEAN);
"""
COLUMNS = ("k", "v", "x", "t", "b")
KEYS = ("k", "t", "b", "k % 2", "upper(t)", "x")
GROWS_ONLY = ("approx_count_distinct(t)", "stddev_pop(k)", "percentile(k, 0.5)")
FUNCTIONS = (
    "count(*)",
    "count(v)",
    "sum(k)",
    "sum(v)",
    "sum(x)",
    "avg(v)",
    "avg(k)",
    "avg(x)",
    "min(t)",
    "max(t)",
    "min(v)",
    "max(x)",
    "min(b)",
    "bool_and(b)",
    "bool_or(b)",
    "bit_and(k)",
    "bit_or(k)",
    "bit_xor(k)",
    "collect_list(k)",
    "collect_set(t)",
    "count(*) FILTER (WHERE b)",
    "sum(v) FILTER (WHERE k > 1)",
)
CONDITIONS = ("k > 1", "b", "t IS NOT NULL", "v >= 2.5 OR x < 1", "t LIKE 'a%'", "k IN (0, 2, 3)")
Step = Mapping[str, Sequence[Mapping[str, Any] | Record]]


@dataclass(frozen=True)
class Story:
    """A pipeline, and steps of records; between some of them the pipeline is stopped and started."""

    sql: str
    steps: tuple[Step, ...]


def rows() -> st.SearchStrategy[dict[str, Any]]:
    """Small values, so that keys meet; doubles whose sums are exact, whatever the order."""
    return st.fixed_dictionaries(
        {
            "k": st.none() | st.integers(0, 4),
            "v": st.none() | st.integers(0, 40).map(lambda n: Decimal(n) / 8 * 2),
            "x": st.none() | st.integers(-8, 8).map(lambda n: n / 4) | st.sampled_from([float("nan"), -0.0]),
            "t": st.none() | st.sampled_from(["a", "ab", "b", "ä", ""]),
            "b": st.none() | st.booleans(),
        }
    )


@st.composite
def inputs(draw: st.DrawFn) -> str:
    """A relation with the columns k, v, x, t, b: plain, filtered, joined or united."""
    name = draw(st.sampled_from(["s", "d", "g"]))
    plain = f"SELECT {', '.join(COLUMNS)} FROM {name}"
    shape = draw(st.sampled_from(["plain", "filter", "join", "union", "computed"]))
    if shape == "filter":
        return f"{plain} WHERE {draw(st.sampled_from(CONDITIONS))}"
    if shape == "join":
        other = draw(st.sampled_from(["s", "d", "g"]))
        key = draw(st.sampled_from(["l.k = r.k", "l.t = r.t AND l.k = r.k", "l.k = r.k AND l.v < r.v"]))
        if name == "s" and other == "d":
            key = draw(st.sampled_from([key, "l.k = r.id"]))
        return f"SELECT l.k, r.v, l.x, r.t, l.b FROM {name} l JOIN {other} r ON {key}"
    if shape == "union":
        other = draw(st.sampled_from(["s", "d", "g"]))
        return f"{plain} UNION ALL SELECT {', '.join(COLUMNS)} FROM {other}"
    if shape == "computed":
        return f"SELECT k + 1 AS k, v * 2 AS v, x, concat(t, '!') AS t, NOT b AS b FROM {name}"
    return plain


@st.composite
def queries(draw: st.DrawFn) -> str:
    source = draw(inputs())
    shape = draw(st.sampled_from(["rows", "global", "grouped", "grouped", "having", "twice", "distinct"]))
    functions = draw(st.lists(st.sampled_from(FUNCTIONS), min_size=1, max_size=4, unique=True))
    listed = ", ".join(f"{function} AS a{at}" for at, function in enumerate(functions))
    key = draw(st.sampled_from(KEYS))
    if shape == "rows":
        return source
    if shape == "global":
        return f"SELECT {listed} FROM ({source})"
    if shape == "distinct":
        return f"SELECT DISTINCT {key} AS key, b FROM ({source})"
    grouped = f"SELECT {key} AS key, {listed}, count(*) AS n FROM ({source}) GROUP BY {key}"
    if shape == "having":
        return f"{grouped} HAVING count(*) > 1"
    if shape == "twice":
        return f"SELECT n, count(*) AS groups, min(key) AS first FROM ({grouped}) GROUP BY n"
    return grouped


@st.composite
def stories(draw: st.DrawFn, views: int, steps: int) -> Story:
    texts = [f"CREATE VIEW v{at} AS {draw(queries())};" for at in range(views)]
    growing = draw(st.sampled_from(GROWS_ONLY))
    texts.append(f"CREATE VIEW grows AS SELECT t, {growing} AS a FROM s GROUP BY t;")
    texts.append("CREATE VIEW over AS SELECT count(*) AS n FROM v0;")
    return Story(RELATIONS + "\n".join(texts), tuple(draw(_steps(steps))))


@st.composite
def _steps(draw: st.DrawFn, count: int) -> list[Step]:
    """Bag deletions take rows that are there, and now and then one that is not."""
    bag: list[dict[str, Any]] = []
    steps: list[Step] = []
    for _ in range(count):
        step: dict[str, list[Any]] = {
            "s": draw(st.lists(rows(), max_size=6)),
            "d": draw(st.lists(_changes(), max_size=4)),
        }
        added = draw(st.lists(rows(), max_size=4))
        bag += added
        gone = [bag.pop(draw(st.integers(0, len(bag) - 1))) for _ in range(draw(st.integers(0, 2))) if bag]
        step["g"] = [*added, *(Record(row, deleted=True) for row in gone)]
        steps.append({name: each for name, each in step.items() if each})
    return [step for step in steps if step]


@st.composite
def _changes(draw: st.DrawFn) -> dict[str, Any] | Record:
    key = draw(st.integers(0, 3))
    if draw(st.booleans()):
        return Record({"id": key}, deleted=True)
    return {"id": key, **draw(rows())}
