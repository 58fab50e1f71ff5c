"""What random queries are made of: expressions over the columns of `rows`, each correct wherever those columns are.

Sums of doubles are exact here, whatever the order; what Spark leaves open (the first of equals, an order of rows) is
not asked for.
"""

KEYS = (
    *(("k",), ("i",), ("v",), ("w",), ("x",), ("f",), ("t",), ("b",), ("y",), ("a",), ("at",), ("z",), ("o",), ("l",)),
    *(("k", "t"), ("o", "x"), ("l", "b"), ("k % 2",), ("upper(t)",), ("o.x",), ("struct(x, k)",)),
    *(("date_trunc('month', at)",), ("x", "y", "v"), ("coalesce(f, x)",), ("transform(l, e -> -e)",)),
)
FUNCTIONS = (
    *("count(*)", "count(v)", "count(k, t)", "count_if(b)", "count(*) FILTER (WHERE b)"),
    *("sum(k)", "sum(i)", "sum(v)", "sum(w)", "sum(x)", "sum(f)", "try_sum(k)", "sum(v) FILTER (WHERE k > 1)"),
    *("avg(k)", "avg(i)", "avg(v)", "avg(w)", "avg(x)", "avg(f)", "sum(v) / count(*)", "coalesce(sum(k), -1) + max(k)"),
    *("min(k)", "max(v)", "min(w)", "max(x)", "min(x)", "max(f)", "min(t)", "max(t)", "min(b)", "max(y)", "min(a)"),
    *("max(at)", "min(z)", "max(o)", "min(l)", "max(struct(x, t))", "max(t) FILTER (WHERE b)", "max(o.t)", "sum(o.x)"),
    *("bool_and(b)", "bool_or(b)", "every(k > 0)", "some(k > 3)", "bit_and(k)", "bit_or(i)", "bit_xor(k)"),
    *("collect_list(k)", "collect_list(o)", "collect_list(m)", "collect_set(t)", "collect_set(y)", "collect_set(l)"),
    *("collect_list(x) FILTER (WHERE b)", "array_agg(v)", "size(collect_set(k))"),
    *("count(DISTINCT t)", "sum(DISTINCT k)", "count(DISTINCT x, b)", "max(DISTINCT v) FILTER (WHERE b)"),
)
OTHER_FUNCTIONS = (
    *("approx_count_distinct(t)", "percentile(k, 0.5)", "median(v)", "percentile_approx(k, 0.5)", "regr_count(k, i)"),
    *("round(stddev_pop(k), 9)", "round(var_samp(v), 9)", "round(skewness(k), 9)", "round(corr(k, i), 9)"),
    *("hll_sketch_estimate(hll_sketch_agg(k))", "listagg(t, ',') WITHIN GROUP (ORDER BY t)", "max_by(k, k)"),
    *("bitmap_count(bitmap_construct_agg(k))", "count_min_sketch(k, 0.5d, 0.5d, 1)"),
    "aggregate(histogram_numeric(k, 9), 0d, (n, bin) -> n + bin.y)",
)
CONDITIONS = (
    *("k > 1", "b", "t IS NOT NULL", "v >= 2.5 OR x < 1", "t LIKE 'a%'", "k IN (0, 2, 3)", "x = 0", "isnan(x)"),
    *("o.x <=> 0", "o.t = 'a'", "size(l) > 0", "y > X'00'", "a > DATE'1970-01-01'", "m['a'] = 1"),
    "exists(l, e -> e = 0)",
)
COMPUTED = (
    *("k + 1 AS k", "i * 2 AS i", "v * 2 AS v", "w + 1 AS w", "x / i AS x", "-f AS f", "concat(t, '!') AS t"),
    *("NOT b AS b", "concat(y, X'01') AS y", "date_add(a, 1) AS a", "at + INTERVAL 1 DAY AS at"),
    *(
        "struct(k + i AS k, -x AS x, upper(t) AS t) AS o",
        "transform(l, e -> e * 2) AS l",
        "map(coalesce(t, 'a'), k) AS m",
    ),
    *("CAST(t AS BIGINT) AS k", "CASE WHEN b THEN x ELSE f END AS x", "coalesce(t, 'none') AS t"),
)
MATCHES = (
    *("l.k = r.k", "l.t = r.t", "l.x = r.x", "l.o = r.o", "l.l = r.l", "l.y = r.y", "l.v = r.v AND l.b = r.b"),
    *("l.k = r.k AND l.t = r.t", "l.k <=> r.k", "l.k = r.i", "l.k + 1 = r.k", "l.a = r.a AND l.at <=> r.at"),
)
RESIDUALS = ("l.v < r.v", "(l.t <> r.t OR l.b)", "l.k + r.k > 3", "l.x <= r.x", "NOT (l.y <=> r.y)", "l.a <> r.a")
HAVINGS = ("count(*) > 1", "count(*) < 3", "max(k) > 1", "sum(v) IS NOT NULL", "bool_or(b)")
