"""Every aggregate function that Spark has is kept, over input that only grows and where rows change and leave."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.log import Record
from tests.engine.conftest import Bench
from tests.engine.test_sketches import answers

SKETCHES = {
    "bits": "bitmap_construct_agg(e)",
    "hll": "hll_sketch_agg(e)",
    "theta": "theta_sketch_agg(e)",
    "tuple_double": "tuple_sketch_agg_double(e, e / 4)",
    "tuple_integer": "tuple_sketch_agg_integer(e, CAST(e AS INT))",
}
"""Of the elements `e` that a row has."""
STREAM = f"""
    CREATE STREAM s (k BIGINT, x DOUBLE, t STRING, b BOOLEAN,
      {", ".join(f"{name} BINARY" for name in SKETCHES)});
"""


def told(sketch: str, kind: str) -> str:
    """What is in a sketch of tuples: how many keys, and the sum of their values."""
    return f"struct(tuple_sketch_estimate_{kind}({sketch}) AS n, tuple_sketch_summary_{kind}({sketch}) AS total)"


FUNCTIONS = {
    "any": "any(b)",
    "any_value": "any_value(t) FILTER (WHERE k = 2)",
    "approx_count_distinct": "approx_count_distinct(k)",
    "approx_percentile": "approx_percentile(k, 0.5)",
    "approx_top_k": "approx_top_k(k, 1)",
    "approx_top_k_accumulate": "approx_top_k_estimate(approx_top_k_accumulate(k), 1)",
    "array_agg": "array_agg(x)",
    "avg": "avg(x)",
    "bit_and": "bit_and(k)",
    "bit_or": "bit_or(k)",
    "bit_xor": "bit_xor(k)",
    "bitmap_and_agg": "bitmap_count(bitmap_and_agg(bits))",
    "bitmap_construct_agg": "bitmap_count(bitmap_construct_agg(k))",
    "bitmap_or_agg": "bitmap_count(bitmap_or_agg(bits))",
    "bool_and": "bool_and(b)",
    "bool_or": "bool_or(b)",
    "collect_list": "collect_list(t)",
    "collect_set": "collect_set(t)",
    "collect_union": "array_sort(collect_union(array(k, k + 1)))",
    "corr": "round(corr(x, k), 9)",
    "count": "count(t)",
    "count_if": "count_if(b)",
    "count_min_sketch": "count_min_sketch(k, 0.5d, 0.5d, 1)",
    "covar_pop": "round(covar_pop(x, k), 9)",
    "covar_samp": "round(covar_samp(x, k), 9)",
    "every": "every(b)",
    "first": "first(t) FILTER (WHERE k = 3)",
    "first_value": "first_value(x) FILTER (WHERE k = 2)",
    "histogram_numeric": "aggregate(histogram_numeric(k, 9), 0d, (n, bin) -> n + bin.y)",
    "hll_sketch_agg": "hll_sketch_estimate(hll_sketch_agg(k))",
    "hll_union_agg": "hll_sketch_estimate(hll_union_agg(hll))",
    "kurtosis": "round(kurtosis(x), 9)",
    "last": "last(x) FILTER (WHERE k = 3)",
    "last_value": "last_value(t) FILTER (WHERE k = 8)",
    "listagg": "listagg(t, '/') WITHIN GROUP (ORDER BY t DESC)",
    "max": "max(t)",
    "max_by": "max_by(t, k)",
    "mean": "mean(x)",
    "median": "median(x)",
    "min": "min(x)",
    "min_by": "min_by(t, k)",
    "mode": "mode(b)",
    "percentile": "percentile(x, array(0.1, 0.9))",
    "percentile_approx": "percentile_approx(x, 0.5)",
    "percentile_cont": "percentile_cont(0.3) WITHIN GROUP (ORDER BY x)",
    "percentile_disc": "percentile_disc(0.3) WITHIN GROUP (ORDER BY x DESC)",
    "regr_avgx": "round(regr_avgx(x, k), 9)",
    "regr_avgy": "round(regr_avgy(x, k), 9)",
    "regr_count": "regr_count(x, k)",
    "regr_intercept": "round(regr_intercept(x, k), 9)",
    "regr_r2": "round(regr_r2(x, k), 9)",
    "regr_slope": "round(regr_slope(x, k), 9)",
    "regr_sxx": "round(regr_sxx(x, k), 9)",
    "regr_sxy": "round(regr_sxy(x, k), 9)",
    "regr_syy": "round(regr_syy(x, k), 9)",
    "skewness": "round(skewness(x), 9)",
    "some": "some(b)",
    "std": "round(std(x), 9)",
    "stddev": "round(stddev(x), 9)",
    "stddev_pop": "round(stddev_pop(x), 9)",
    "stddev_samp": "round(stddev_samp(x), 9)",
    "string_agg": "string_agg(t) WITHIN GROUP (ORDER BY t)",
    "sum": "sum(x)",
    "theta_intersection_agg": "theta_sketch_estimate(theta_intersection_agg(theta))",
    "theta_sketch_agg": "theta_sketch_estimate(theta_sketch_agg(k))",
    "theta_union_agg": "theta_sketch_estimate(theta_union_agg(theta))",
    "try_avg": "try_avg(k)",
    "try_sum": "try_sum(k)",
    "tuple_intersection_agg_double": told("tuple_intersection_agg_double(tuple_double)", "double"),
    "tuple_intersection_agg_integer": told("tuple_intersection_agg_integer(tuple_integer)", "integer"),
    "tuple_sketch_agg_double": told("tuple_sketch_agg_double(k, x)", "double"),
    "tuple_sketch_agg_integer": told("tuple_sketch_agg_integer(k, CAST(k AS INT))", "integer"),
    "tuple_union_agg_double": told("tuple_union_agg_double(tuple_double)", "double"),
    "tuple_union_agg_integer": told("tuple_union_agg_integer(tuple_integer)", "integer"),
    "var_pop": "round(var_pop(x), 9)",
    "var_samp": "round(var_samp(x), 9)",
    "variance": "round(variance(x), 9)",
}
COMBINED = """
    CREATE VIEW parts WITH (store = 'none') AS
      SELECT k % 4 AS part, approx_top_k_accumulate(k) AS tops FROM s GROUP BY k % 4;
    CREATE VIEW combined AS
      SELECT part % 2 AS odd, array_sort(approx_top_k_estimate(approx_top_k_combine(tops), 50)) AS tops
      FROM parts GROUP BY part % 2;
"""
"""Reads what approx_top_k_accumulate gives, which is no column of a stream."""
ELSEWHERE = {
    "grouping": "belongs to GROUPING SETS",
    "grouping_id": "belongs to GROUPING SETS",
    "measure": "belongs to metric views",
    **{
        f"kll_{what}_agg_{type_}": "draws from a random source, and is refused"
        for what in ("merge", "sketch")
        for type_ in ("bigint", "double", "float")
    },
}
pytestmark = pytest.mark.spark
ENDS = "first(v) AS a, last(v) AS b, first(v, true) AS c, last(v, true) AS d, any_value(v) AS e"


def known_to_spark(spark: SparkSession) -> set[str]:
    registry: Any = spark._jsparkSession.sessionState().functionRegistry()
    names, found = registry.listFunction().iterator(), set()
    while names.hasNext():
        function = registry.lookupFunction(names.next()).get()
        if function.getGroup() == "agg_funcs":
            found.add(function.getName())
    return found


def test_no_aggregate_function_is_forgotten(spark: SparkSession) -> None:
    assert known_to_spark(spark) == {*FUNCTIONS, "approx_top_k_combine", *ELSEWHERE}


def test_every_aggregate_function_equals_batch(bench: Callable[..., Bench], spark: SparkSession) -> None:
    listed = ", ".join(f"{call} AS `{name}`" for name, call in FUNCTIONS.items())
    made = bench(
        f"{STREAM} CREATE VIEW whole AS SELECT {listed} FROM s;"
        f"CREATE VIEW grouped AS SELECT k % 2 AS odd, {listed} FROM s GROUP BY k % 2; {COMBINED}",
    )
    sketches = sketches_of(spark)
    for n in (0, 1, 7):
        rows = [row(k, sketches) for k in range(n, n + 7)]
        made.append({"s": [*rows, rows[1], rows[-1], {"k": None}]})
        made.drain()
    made.start()
    made.append({"s": [row(3, sketches)]})
    made.drain()
    made.check()
    assert made.checked == 4


def test_every_aggregate_function_equals_batch_where_rows_change_and_leave(
    bench: Callable[..., Bench], spark: SparkSession
) -> None:
    listed = ", ".join(f"{call} AS `{name}`" for name, call in FUNCTIONS.items())
    table = STREAM.replace("CREATE STREAM s (", "CREATE TABLE s (id BIGINT PRIMARY KEY, ")
    made = bench(f"{table} CREATE VIEW grouped AS SELECT k % 2 AS odd, {listed} FROM s GROUP BY k % 2; {COMBINED}")
    sketches = sketches_of(spark)

    def change(rows: dict[int, int | None], *, gone: Sequence[int] = ()) -> None:
        """The rows by their ids; one value of k is always the most frequent, and one of b."""
        came = [{"id": i, "k": k} | ({} if k is None else row(k, sketches)) for i, k in rows.items()]
        made.append({"s": [*came, *(Record({"id": i}, deleted=True) for i in gone)]})
        made.drain()

    change({0: 2, 1: 2, 2: 2, 3: 4, 4: 3, 5: 3, 6: 3, 7: 1, 8: None, 9: 2})
    change({3: 2, 7: 3, 8: 8}, gone=[0, 4])
    made.start()
    change({8: 2}, gone=[1, 2, 3])
    change({}, gone=[8, 9])
    made.check()
    assert made.checked == 4
    assert [each["odd"] for each in made.content("grouped")] == [1]


def test_the_first_and_the_last_value_are_those_of_the_log(bench: Callable[..., Bench]) -> None:
    made = bench(
        "CREATE STREAM s (k BIGINT, v STRING); CREATE TABLE t (id BIGINT PRIMARY KEY, k BIGINT, v STRING);"
        f"CREATE VIEW of_stream AS SELECT k, {ENDS} FROM s GROUP BY k;"
        f"CREATE VIEW of_table AS SELECT k, {ENDS} FROM t GROUP BY k;"
    )

    def found(view: str) -> dict[int, list[str | None]]:
        return {row["k"]: [row[name] for name in "abcde"] for row in answers(made, view)}

    made.append({"s": [{"k": 1}, {"k": 2, "v": "y"}, {"k": 1, "v": "x"}, {"k": 2, "v": "z"}]})
    made.append({"t": [{"id": 1, "k": 1, "v": "a"}, {"id": 2, "k": 1, "v": "b"}, {"id": 3, "k": 1}]})
    made.drain()
    assert found("of_stream") == {1: [None, "x", "x", "x", None], 2: ["y", "z", "y", "z", "y"]}
    assert found("of_table") == {1: ["a", None, "a", "b", "a"]}
    made.append({"s": [{"k": 1, "v": "w"}, {"k": 2}], "t": [{"id": 1, "k": 1, "v": "c"}]})
    made.drain()
    assert found("of_stream") == {1: [None, "w", "x", "w", None], 2: ["y", None, "y", "z", "y"]}
    assert found("of_table") == {1: ["b", "c", "b", "c", "b"]}  # what row 1 is now came last
    made.append({"t": [Record({"id": 2}, deleted=True)]})
    made.drain()
    assert found("of_table") == {1: [None, "c", "c", "c", None]}


def sketches_of(spark: SparkSession) -> list[dict[str, bytes]]:
    """For each value of k one of each kind, to be put together: of 40 elements, from k on."""
    columns = ", ".join(f"{made_by} AS {name}" for name, made_by in SKETCHES.items())
    elements = "SELECT a.id AS k, a.id + b.id AS e FROM range(14) a CROSS JOIN range(40) b"
    made = spark.sql(f"SELECT {columns} FROM ({elements}) GROUP BY k ORDER BY k").collect()
    return [{name: bytes(value) for name, value in each.asDict().items()} for each in made]


def row(k: int, sketches: list[dict[str, bytes]]) -> dict[str, Any]:
    return {"k": k, "x": k / 4, "t": f"t{k % 5}", "b": k % 3 == 0, **sketches[k]}
