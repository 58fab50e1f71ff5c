"""What the user declared: streams, tables, views, policies, pipelines. Pure values."""

from penstock.model.duration import duration_text, parse_duration
from penstock.model.load import load_pipeline, pipeline_of
from penstock.model.pipeline import Pipeline
from penstock.model.relation import History, Stream, Table
from penstock.model.text import declaration_text
from penstock.model.view import Function, Sql, View, spot_in

__all__ = [
    "Function",
    "History",
    "Pipeline",
    "Sql",
    "Stream",
    "Table",
    "View",
    "declaration_text",
    "duration_text",
    "load_pipeline",
    "parse_duration",
    "pipeline_of",
    "spot_in",
]
