"""Streams on Apache Spark: an embedded log, incremental views."""

from importlib import import_module
from typing import TYPE_CHECKING

from penstock.model.declare import option, stream, table, view

ON_DATAFRAMES = {
    "asof_join": "penstock.engine.asof",
    "compare_with": "penstock.engine.comparing",
    "deduplicate": "penstock.engine.duplicates",
}
"""They need Spark, which takes its time to be imported; many commands do without."""

if TYPE_CHECKING:
    from penstock.engine.asof import asof_join
    from penstock.engine.comparing import compare_with
    from penstock.engine.duplicates import deduplicate
else:

    def __getattr__(name):
        if name not in ON_DATAFRAMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(ON_DATAFRAMES[name]), name)


__all__ = ["asof_join", "compare_with", "deduplicate", "option", "stream", "table", "view"]
__version__ = "0.1.0"
