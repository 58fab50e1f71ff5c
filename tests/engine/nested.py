"""Random queries out of all constructs, nested in each other.

Every query has the columns k BIGINT, v BIGINT, t STRING, so that any can stand wherever a relation can. One of some
`depth` has so many operators on its longest way; a second input is a relation itself, so that answers stay small.
"""

from collections.abc import Callable
from random import Random

RELATIONS = """
CREATE STREAM s (k BIGINT, v BIGINT, t STRING);
CREATE TABLE d (id BIGINT PRIMARY KEY, k BIGINT, v BIGINT, t STRING);
CREATE TABLE g (k BIGINT, v BIGINT, t STRING);
"""
DEPTH = 4
CONDITIONS = ("k > 1", "v IS NOT NULL", "t = 'a'", "k < v", "NOT (v > 3)", "t LIKE '%b%'", "v % 2 = 0 OR k IS NULL")
KEYS = ("l.k = r.k", "l.k <=> r.k", "l.t = r.t", "l.k = r.v AND l.t = r.t", "l.k + 1 = r.k")
RESIDUALS = ("l.v < r.v", "l.v <> r.v", "coalesce(l.t, '') <= coalesce(r.t, '')")
RANGES = ("l.v BETWEEN r.v - 1 AND r.v + 1", "l.v > r.v", "l.v >= r.k AND l.v < r.v")
NUMBERS = (
    *("count(*)", "count(v)", "sum(v)", "min(v)", "max(v)", "count(DISTINCT v)", "sum(DISTINCT v)", "bit_xor(v)"),
    *(
        "max_by(v, struct(k, v, t))",
        "CAST(round(avg(v) * 10) AS BIGINT)",
        "count_if(v > 2)",
        "approx_count_distinct(v)",
    ),
    *("sum(v) FILTER (WHERE k > 1)", "CAST(percentile(v, 0.5) AS BIGINT)", "size(collect_set(t))"),
)
TEXTS = ("min(t)", "max(t)", "min(t) FILTER (WHERE v > 1)", "array_join(array_sort(collect_set(t)), ',')")
OVER_ROWS = (
    *(
        "row_number() OVER w",
        "rank() OVER w",
        "dense_rank() OVER w",
        "ntile(3) OVER w",
        "lag(v) OVER w",
        "lead(v, 2) OVER w",
    ),
    *("sum(v) OVER w", "count(*) OVER w", "max(v) OVER (PARTITION BY k)", "CAST(cume_dist() OVER w * 1000 AS BIGINT)"),
    "sum(v) OVER (PARTITION BY t ORDER BY v, k, t ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
    "min(v) OVER (PARTITION BY k ORDER BY v RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "nth_value(v, 2) OVER (PARTITION BY k ORDER BY v, t ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
)
FEW = "ORDER BY v DESC NULLS LAST, k, t LIMIT"


class Nest:
    """Writes queries; the same for the same seed."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._shapes: list[Callable[[Nest, str], str]] = []
        self.told: set[str] = set()
        """The constructs that were used."""

    def query(self, depth: int) -> str:
        if depth == 0:
            return self._relation()
        if not self._shapes:  # each once before any comes again
            self._shapes = self._random.sample(SHAPES, len(SHAPES))
        shape = self._shapes.pop()
        self.told.add(shape.__name__)
        return shape(self, self.query(depth - 1))

    def pick(self, *choices: str) -> str:
        return self._random.choice(choices)

    def _relation(self) -> str:
        return self.pick("SELECT k, v, t FROM s", "SELECT k, v, t FROM d", "SELECT k, v, t FROM g")

    def other(self) -> str:
        return self._relation()


def filtered(nest: Nest, q: str) -> str:
    return f"SELECT k, v, t FROM ({q}) WHERE {nest.pick(*CONDITIONS)}"


def projected(nest: Nest, q: str) -> str:
    numbers = nest.pick("v AS k, k AS v", "k, v % 7 AS v", "coalesce(k, 0) AS k, v + 1 AS v")
    return f"SELECT {numbers}, upper(t) AS t FROM ({q})"


def combined(nest: Nest, q: str) -> str:
    words = ("UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
    return f"({q}) {nest.pick(*words)} ({nest.other()})"


def distinct(nest: Nest, q: str) -> str:
    return f"SELECT DISTINCT k, v, t FROM ({q})"


def joined(nest: Nest, q: str) -> str:
    on = nest.pick(*KEYS, *RANGES)
    if on not in RANGES and nest.pick("plain", "residual") == "residual":
        on = f"{on} AND {nest.pick(*RESIDUALS)}"
    left, right = (q, nest.other()) if nest.pick("first", "second") == "first" else (nest.other(), q)
    kind = nest.pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
    columns = "coalesce(l.k, r.k) AS k, coalesce(l.v, 0) - coalesce(r.v, 0) AS v, concat(l.t, r.t) AS t"
    return f"SELECT {columns} FROM ({left}) l {kind} ({right}) r ON {on}"


def crossed(nest: Nest, q: str) -> str:
    return f"SELECT l.k, r.n AS v, l.t FROM ({q}) l CROSS JOIN (SELECT count(*) AS n FROM ({nest.other()})) r"


def kept_or_left_out(nest: Nest, q: str) -> str:
    kind = nest.pick("LEFT SEMI JOIN", "LEFT ANTI JOIN")
    return f"SELECT k, v, t FROM ({q}) l {kind} ({nest.other()}) r ON {nest.pick(*KEYS, *RANGES)}"


def grouped(nest: Nest, q: str) -> str:
    having = nest.pick("", " HAVING count(*) > 1", " HAVING max(v) IS NOT NULL")
    return f"SELECT k, {nest.pick(*NUMBERS)} AS v, {nest.pick(*TEXTS)} AS t FROM ({q}) GROUP BY k{having}"


def gathered(nest: Nest, q: str) -> str:
    return f"SELECT count(*) AS k, {nest.pick(*NUMBERS)} AS v, {nest.pick(*TEXTS)} AS t FROM ({q})"


def grouped_in_sets(nest: Nest, q: str) -> str:
    sets = nest.pick("ROLLUP (k, t)", "CUBE (k, t)", "GROUPING SETS ((k), (t), ())")
    return f"SELECT k, sum(v) + grouping_id() AS v, t FROM ({q}) GROUP BY {sets}"


def numbered(nest: Nest, q: str) -> str:
    order = nest.pick("v, k, t", "v DESC, k, t", "t NULLS LAST, v, k")
    window = f"PARTITION BY {nest.pick('k', 't', 'k % 2')} ORDER BY {order}"
    return f"SELECT k, CAST({nest.pick(*OVER_ROWS)} AS BIGINT) AS v, t FROM ({q}) WINDOW w AS ({window})"


def first_of_each(nest: Nest, q: str) -> str:
    rank = nest.pick("row_number()", "rank()", "dense_rank()")
    ranked = f"SELECT k, v, t, {rank} OVER (PARTITION BY k ORDER BY v DESC, t) AS n FROM ({q})"
    return f"SELECT k, v, t FROM ({ranked}) WHERE n <= {nest.pick('1', '2')}"


def first(nest: Nest, q: str) -> str:
    return f"SELECT k, v, t FROM ({q}) {FEW} {nest.pick('1', '3', '4 OFFSET 1')}"


def above_average(nest: Nest, q: str) -> str:
    bound = f"SELECT {nest.pick('avg(v)', 'max(k)')} FROM ({nest.other()})"
    return f"SELECT k, v, t FROM ({q}) WHERE v {nest.pick('>', '<=')} ({bound})"


def looked_up(nest: Nest, q: str) -> str:
    found = f"SELECT {nest.pick('max', 'count')}(r.v) FROM ({nest.other()}) r WHERE r.k = l.k"
    return f"SELECT k, ({found}) AS v, t FROM ({q}) l"


def among(nest: Nest, q: str) -> str:
    test = nest.pick("k IN", "k NOT IN", "v NOT IN", "v IN")
    return f"SELECT k, v, t FROM ({q}) WHERE {test} (SELECT k FROM ({nest.other()}))"


def existing(nest: Nest, q: str) -> str:
    test = nest.pick("EXISTS", "NOT EXISTS")
    inner = f"SELECT 1 FROM ({nest.other()}) r WHERE r.k = l.k AND {nest.pick('r.v > 1', 'r.v < l.v')}"
    return f"SELECT k, v, t FROM ({q}) l WHERE {test} ({inner})"


def multiplied(nest: Nest, q: str) -> str:
    made = nest.pick("explode(array(v, k))", "explode_outer(filter(array(v, k), x -> x > 2))", "stack(2, v, k)")
    return f"SELECT k, n AS v, t FROM ({q}) LATERAL VIEW {made} AS n"


def turned(nest: Nest, q: str) -> str:
    pivoted = f"SELECT * FROM ({q}) PIVOT ({nest.pick('sum', 'max')}(v) FOR t IN ('a' AS a, 'b' AS b))"
    return f"SELECT k, v, t FROM ({pivoted}) UNPIVOT (v FOR t IN (a, b))"


def met_with_itself(nest: Nest, q: str) -> str:
    few = f"SELECT k, v, t FROM ({q}) {FEW} 4"
    return f"WITH c AS ({few}) SELECT a.k, b.v, a.t FROM c a JOIN c b ON {nest.pick('a.k = b.k', 'a.v < b.v')}"


def met_with_constants(nest: Nest, q: str) -> str:
    kind = nest.pick("JOIN", "LEFT JOIN", "LEFT ANTI JOIN")
    return f"SELECT k, v, t FROM ({q}) {kind} VALUES (1, 'one'), (2, 'two') AS c(n, name) ON k = n"


SHAPES: tuple[Callable[[Nest, str], str], ...] = (
    *(filtered, projected, combined, distinct, joined, joined, joined, crossed, kept_or_left_out, grouped, grouped),
    *(gathered, grouped_in_sets, numbered, numbered, first_of_each, first, above_average, looked_up, among, existing),
    *(multiplied, turned, met_with_itself, met_with_constants),
)
