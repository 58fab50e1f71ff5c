"""Random pipelines, out of everything that can be declared in SQL.

Strategies are made once, here: making them anew for every value takes longer than the tests.
"""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

from hypothesis import strategies as st

from penstock.model import Pipeline, Sql, Stream, Table, View
from penstock.model.pipeline import PipelineOptions
from penstock.model.relation import DELETED, Relation, keyed, with_history
from penstock.model.sinks import KafkaTopic, Smtp, Webhook
from penstock.model.stores import OnPostgres, OnRedis
from penstock.model.view import STORES, Emit, ViewOptions
from penstock.schema import RESERVED, SCALARS, Array, Column, Decimal, Map, Scalar, Schema, Struct, Type

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True)
ODD_NAMES = ["primary", "key", "not", "null", "with", "as", "stream", "view", "a b", "`", "'", "a;b", "--", "é"]
COLUMN_NAMES = st.one_of(
    st.sampled_from(ODD_NAMES), NAMES, st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
).filter(lambda name: name.lower() not in RESERVED)
DURATIONS = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=400))
# Pieces of a query that end and begin what a scanner must not mix up.
PIECES = ["a", "'b;'", "'it''s'", '"c\\";"', "`d;`", "/* e; */", "-- f;\n", "/*+ g */", "\n", "(", ")"]
PIECES += ["r'\\'", "1.5", "<=>", "$$;$$"]
TRUTH = st.booleans()


def _lower_name(column: Column) -> str:
    return column.name.lower()


def _nested(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    fields = st.lists(st.builds(Column, NAMES, inner, TRUTH), min_size=1, max_size=3, unique_by=_lower_name)
    structs = fields.map(lambda found: Struct(tuple(found)))
    return st.one_of(st.builds(Array, inner), st.builds(Map, inner, inner), structs)


DECIMALS = st.tuples(st.integers(0, 38), st.integers(1, 38)).map(lambda pair: Decimal(max(pair), min(pair)))
TYPES: st.SearchStrategy[Type] = st.recursive(
    st.one_of(st.sampled_from(sorted(SCALARS)).map(Scalar), DECIMALS), _nested, max_leaves=3
)
COLUMNS = st.builds(Column, COLUMN_NAMES, TYPES, TRUTH)
SCHEMAS = st.lists(COLUMNS, min_size=1, max_size=4, unique_by=_lower_name).map(lambda found: Schema(tuple(found)))
PARTITIONS = st.integers(1, 1024)
TOPICS = st.one_of(st.just(""), st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,12}", fullmatch=True))
WATERMARKS = st.one_of(st.none(), DURATIONS)
QUERIES = st.lists(st.sampled_from(PIECES), max_size=6).map(lambda found: Sql(" ".join(["SELECT", *found, "end"])))
LATENESS = st.one_of(
    st.sampled_from([("keep", timedelta(0)), ("drop", timedelta(0))]),
    st.tuples(st.just("correct"), DURATIONS.filter(bool)),
)
KEYS = st.one_of(st.none(), st.lists(COLUMN_NAMES, min_size=1, max_size=3, unique_by=str.lower).map(tuple))
SINKS: list[dict[str, Any]] = [
    {},
    {"webhook": Webhook("https://host:8443/it's"), "webhook_secrets": Path("keys"), "webhook_attempts": 3},
    {"email": ("ann@example.org", "bob@example.org"), "email_every": timedelta(minutes=5)},
    {"kafka": KafkaTopic("a:9092,b:9092", "spend")},
]
SERVERS = [Smtp("mail", 25), Smtp("::1", 2525, user="ann", starttls="never"), Smtp("mail", 465, tls=True, sender="a@b")]
VIEW_OPTIONS = st.builds(
    lambda store, key, emit, late, parts, sinks: ViewOptions(
        store,
        key,
        emit,
        late[0],
        late[1],
        partition_by=parts if store == "files" else None,
        index=(parts, parts[:1]) if store == "table" and parts else None,
        **(sinks if store != "none" else {}),
    ),
    st.sampled_from(STORES),
    KEYS,
    st.sampled_from(get_args(Emit)),
    LATENESS,
    KEYS,
    st.sampled_from(SINKS),
)
OPTIONS = st.builds(
    PipelineOptions,
    max_records_per_batch=st.integers(1, 10**9),
    trigger_interval=DURATIONS,
    shuffle_partitions=st.one_of(st.none(), st.integers(1, 1000)),
    memory=st.sampled_from(["2g", "512m"]),
    ansi=TRUTH,
    time_zone=st.sampled_from(["UTC", "+02:00"]),
    store=st.sampled_from([None, OnRedis("redis://cache:6379/0"), OnPostgres("postgresql://ann@db/views")]),
    smtp=st.sampled_from(SERVERS),
    log=st.sampled_from([None, Path("log"), Path("/var/it's")]),
    spark=st.dictionaries(
        st.from_regex(r"spark\.x\.[a-zA-Z._-]{1,8}", fullmatch=True), st.text(st.characters(codec="utf-8")), max_size=2
    ),
)
NAME_LISTS = st.lists(NAMES, max_size=5, unique_by=str.lower)


@st.composite
def pipelines(draw: st.DrawFn) -> Pipeline:
    relations: list[Relation] = []
    views: list[View] = []
    for name in draw(NAME_LISTS):
        if draw(TRUTH):
            options = draw(VIEW_OPTIONS)
            if options.store == "files" and name.startswith("_"):
                options = replace(options, store="topic", partition_by=None, index=None)
            views.append(View(name, draw(QUERIES), options))
        else:
            relations.extend(with_history(_relation(draw, name)))
    return Pipeline("p", Path(), tuple(relations), tuple(views), draw(OPTIONS))


def _relation(draw: st.DrawFn, name: str) -> Relation:
    schema, partitions, topic = draw(SCHEMAS), draw(PARTITIONS), draw(TOPICS)
    times = [column.name for column in schema.columns if column.type == Scalar("TIMESTAMP")]
    timed, grows, is_keyed = draw(TRUTH), draw(TRUTH), draw(TRUTH)
    event_time = times[0] if timed and times else None
    if grows:
        return Stream(name, schema, event_time, draw(WATERMARKS) if event_time else None, partitions, topic)
    scalars = [column.name for column in schema.columns if isinstance(column.type, Scalar | Decimal)]
    key = tuple(reversed(scalars)) if is_keyed else ()
    versioned = key and event_time and draw(TRUTH) and DELETED not in map(str.lower, schema.names)
    history, watermark = (f"{name}_versions", draw(WATERMARKS)) if versioned else (None, None)
    return Table(name, keyed(schema, key), key, event_time, partitions, topic, history, watermark)
