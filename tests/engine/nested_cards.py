"""What nested random queries are made of: texts over the columns k, v, t, in decks from which they are dealt.

Where Spark leaves open what comes first and nothing settles it, all columns are named.
"""

DECKS: dict[str, tuple[str, ...]] = {
    "relation": ("s", "d", "g", "view"),
    "condition": (
        *("k > 1", "v IS NOT NULL", "t = 'a'", "k < v", "NOT (v > 3)", "t LIKE '%b%'", "v % 2 = 0 OR k IS NULL"),
    ),
    "projection": ("v AS k, k AS v", "k, v % 7 AS v", "coalesce(k, 0) AS k, v + 1 AS v"),
    "set operation": ("UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"),
    "join": ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"),
    "half join": ("LEFT SEMI JOIN", "LEFT ANTI JOIN"),
    "place": ("first", "second"),
    "match": (
        *("l.k = r.k", "l.k <=> r.k", "l.t = r.t AND l.v <> r.v", "l.k = r.v AND l.t = r.t", "l.k + 1 = r.k"),
        *("l.v BETWEEN r.v - 1 AND r.v + 1", "l.v > r.v", "l.k = r.k AND l.v >= r.k AND l.v < r.v"),
        "l.k <=> r.k AND coalesce(l.t, '') <= coalesce(r.t, '')",
    ),
    "crossing": (
        "SELECT l.k, r.n AS v, l.t FROM ({q}) l CROSS JOIN (SELECT count(*) AS n FROM ({other})) r",
        "SELECT l.k, r.v, l.t FROM ({q}) l CROSS JOIN (SELECT v FROM ({other}) ORDER BY v LIMIT 3) r",
    ),
    "number": (
        *("count(*)", "count(v)", "sum(v)", "min(v)", "max(v)", "bit_xor(v)", "bit_and(v)", "bool_or(v > 2)"),
        *(
            "count(DISTINCT v)",
            "count(DISTINCT k, t)",
            "sum(DISTINCT v)",
            "count(DISTINCT t) FILTER (WHERE {condition})",
        ),
        *(
            "avg(v)",
            "round(stddev(v), 6)",
            "round(var_pop(v), 6)",
            "round(corr(k, v), 6)",
            "max_by(v, struct(k, v, t))",
        ),
        *(
            "count_if(v > 2)",
            "approx_count_distinct(v)",
            "percentile(v, 0.5)",
            "approx_percentile(v, 0.5)",
            "median(k)",
        ),
        *("sum(v) FILTER (WHERE {condition})", "max(k) FILTER (WHERE {condition})", "sort_array(collect_list(v))"),
    ),
    "text": (
        *("min(t)", "max(t)", "min(t) FILTER (WHERE {condition})", "array_join(array_sort(collect_set(t)), ',')"),
        "array_join(sort_array(collect_list(t)), ',')",
    ),
    "grouping": (
        "SELECT k, {number} AS v, {text} AS t FROM ({q}) GROUP BY k",
        "SELECT k, {number} AS v, t FROM ({q}) GROUP BY k, t",
        "SELECT v % 3 AS k, {number} AS v, {text} AS t FROM ({q}) GROUP BY v % 3",
    ),
    "having": ("", " HAVING count(*) > 1", " HAVING max(v) IS NOT NULL"),
    "sets": ("ROLLUP (k, t)", "CUBE (k, t)", "GROUPING SETS ((k), (t), ())"),
    "over rows": (
        *("row_number() OVER w", "rank() OVER w", "dense_rank() OVER w", "percent_rank() OVER w", "cume_dist() OVER w"),
        *("rank() OVER (PARTITION BY t ORDER BY v)", "ntile(3) OVER w", "lag(v) OVER w", "lead(v, 2) OVER w"),
        *("lag(t, 1, 'none') OVER w", "lead(v) IGNORE NULLS OVER w"),
        *("sum(v) OVER w", "count(*) OVER (ORDER BY k)", "max(v) OVER (PARTITION BY k)", "avg(v) OVER w"),
        *(
            "first_value(v) OVER (PARTITION BY k ORDER BY t)",
            "last_value(v) OVER (PARTITION BY t ORDER BY k DESC)",
            "first_value(t) IGNORE NULLS OVER w",
            "nth_value(v, 2) OVER (PARTITION BY k ORDER BY t)",
        ),
        "sum(v) OVER (PARTITION BY t ORDER BY v, k, t ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
        "last_value(v) OVER (PARTITION BY k ORDER BY t, v ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING)",
        "min(v) OVER (PARTITION BY k ORDER BY v RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
        "sum(k) OVER (PARTITION BY t ORDER BY v DESC RANGE BETWEEN 2 PRECEDING AND CURRENT ROW)",
        "nth_value(v, 2) OVER (PARTITION BY k ORDER BY v, t ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    ),
    "window": (
        "PARTITION BY k ORDER BY v, t",
        "PARTITION BY t ORDER BY v DESC, k",
        "PARTITION BY k % 2 ORDER BY t NULLS LAST, v, k",
        "ORDER BY k DESC, v, t",
    ),
    "rank": ("row_number()", "rank()", "dense_rank()"),
    "best": ("ORDER BY v DESC, t", "ORDER BY v", "ORDER BY t DESC NULLS LAST"),
    "first": (
        "SELECT k, v, t FROM ({q}) {order} {limit}",
        "SELECT k, v, t FROM (SELECT * FROM ({q}) {order}) WHERE {condition} {limit}",
    ),
    "order": ("ORDER BY v DESC NULLS LAST, k, t", "ORDER BY v", "ORDER BY t DESC, k", "ORDER BY k % 2, v DESC"),
    "limit": ("LIMIT 1", "LIMIT 3", "LIMIT 4 OFFSET 1", "OFFSET 2"),
    "one value": (
        *("SELECT avg(v) FROM ({other})", "SELECT max(k) FROM ({other})"),
        "SELECT v FROM ({other}) ORDER BY v DESC, k, t LIMIT 1",
    ),
    "use of a value": (
        "SELECT k, v, t FROM ({q}) WHERE v > ({value})",
        "SELECT k, v, t FROM ({q}) WHERE v <= ({value}) OR k = 1",
        "SELECT k, v - CAST(({value}) AS BIGINT) AS v, t FROM ({q})",
    ),
    "looked up": (
        "SELECT max(r.v) FROM ({other}) r WHERE r.k = l.k",
        "SELECT count(r.v) FROM ({other}) r WHERE r.k = l.k",
        "SELECT count(DISTINCT r.v) FROM ({other}) r WHERE r.t = l.t AND r.v > 1",
    ),
    "membership": (
        *("k IN (SELECT k FROM ({other}))", "k NOT IN (SELECT k FROM ({other}))", "v NOT IN (SELECT k FROM ({other}))"),
        "v > 3 OR k IN (SELECT v FROM ({other}))",
        "(k, v) NOT IN (SELECT k, v FROM ({other}))",
        "v IN (SELECT r.v FROM ({other}) r WHERE r.k = l.k)",
        "v NOT IN (SELECT r.v FROM ({other}) r WHERE r.t = l.t)",
        "EXISTS (SELECT 1 FROM ({other}) r WHERE r.k = l.k AND r.v > 1)",
        "NOT EXISTS (SELECT 1 FROM ({other}) r WHERE r.k = l.k AND r.v < l.v)",
        "v > 3 OR EXISTS (SELECT 1 FROM ({other}) r WHERE r.t = l.t)",
        "NOT EXISTS (SELECT 1 FROM ({other}) WHERE v > 4)",
    ),
    "beside": (
        "({q}) l, LATERAL (SELECT max(v) AS n FROM ({other}) WHERE k = l.k) r",
        "({q}) l, LATERAL (SELECT v AS n FROM ({other}) WHERE k = l.k ORDER BY v DESC, t LIMIT 2) r",
        "({q}) l LEFT JOIN LATERAL (SELECT DISTINCT v AS n FROM ({other}) WHERE t = l.t) r ON true",
        "({q}) l JOIN LATERAL (SELECT v AS n FROM ({other}) WHERE k = l.k UNION SELECT l.v) r ON true",
        "({q}) l, LATERAL (SELECT v AS n FROM ({other}) WHERE v < l.v) r",
        "({q}) l LEFT JOIN LATERAL (SELECT count(*) AS n FROM ({other}) WHERE k <=> l.k HAVING count(*) > 1) r ON true",
        "({q}) l, LATERAL (SELECT l.v + l.k AS n) r",
        "({q}) l, LATERAL explode(array(l.v, l.k)) AS r(n)",
    ),
    "generator": (
        *("explode(array(v, k)) AS n", "explode_outer(filter(array(v, k), x -> x > 2)) AS n"),
        *("posexplode(array(v, k)) AS p, n", "posexplode_outer(filter(array(v, k), x -> x > 2)) AS p, n"),
        *(
            "inline(array(struct(k AS x, v AS y), struct(v AS x, k AS y))) AS p, n",
            "inline_outer(IF(v > 1, array(struct(k)), NULL)) AS n",
        ),
        *("stack(2, v, k) AS n", "OUTER explode(filter(array(v, k), x -> x < 2)) AS n"),
    ),
    "turning": (
        "SELECT k, v, t FROM (SELECT * FROM ({q}) PIVOT (sum(v) FOR t IN ('a' AS a, 'b' AS b)))"
        " UNPIVOT (v FOR t IN (a, b))",
        "SELECT k, a_n AS v, t FROM (SELECT * FROM (SELECT k, v, t, t AS u FROM ({q}))"
        " PIVOT (max(v) AS m, count(*) AS n FOR u IN ('a' AS a, 'ab' AS ab)))",
        "SELECT k, v, t FROM (SELECT k AS a, v AS b, k FROM ({q})) UNPIVOT INCLUDE NULLS (v FOR t IN (a, b))",
    ),
    "by name": (
        "WITH c AS ({few}) SELECT a.k, b.v, a.t FROM c a JOIN c b ON a.k = b.k",
        "WITH c AS ({few}) SELECT a.k, b.v, a.t FROM c a LEFT JOIN c b ON a.v < b.v",
        "WITH c AS ({q}) SELECT k, v, t FROM c UNION ALL SELECT k, -v, t FROM c WHERE {condition}",
        "WITH c AS ({q}) SELECT c.k, m AS v, c.t FROM c JOIN (SELECT k, max(v) AS m FROM c GROUP BY k) x ON c.k = x.k",
    ),
    "constants": (
        "SELECT k, v, t FROM ({q}) JOIN VALUES (1, 'one'), (2, 'two') AS c(n, name) ON k = n",
        "SELECT k, v, name AS t FROM ({q}) LEFT JOIN VALUES (1, 'one'), (2, 'two') AS c(n, name) ON k = n",
        "SELECT k, v, t FROM ({q}) LEFT ANTI JOIN VALUES (1), (NULL) AS c(n) ON v = n",
        "SELECT k, v, t FROM ({q}) UNION ALL VALUES (1L, 2L, 'a'), (NULL, 0L, 'b')",
    ),
}
