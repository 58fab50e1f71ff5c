"""The whole: rooms wired together. The only room that knows all others.

What needs Spark is imported from its file (`penstock.app.pipelines`): PySpark takes long to import, and commands that
only read answers do not need it.
"""

from penstock.app.place import Place, place_of

__all__ = ["Place", "place_of"]
