"""Streams on Apache Spark: an embedded log, incremental views."""

from penstock.model.declare import option, stream, table, view

__all__ = ["option", "stream", "table", "view"]
__version__ = "0.1.0"
