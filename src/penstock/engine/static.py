"""Static rows: what a query reads besides declared relations, VALUES or files, read once when a lineage begins.

They lie in the lineage's folder from then on, and are in the first batch of its query. That the files have not changed
since is part of the fingerprint.
"""

from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.engine.failing import last_cause
from penstock.engine.graph import Graph, Operator
from penstock.engine.lineage import Lineage
from penstock.errors import EngineError

SOURCE = "penstock.kernel.source.StaticSource"


def static_streams(spark: SparkSession, graph: Graph, lineage: Lineage) -> dict[str, DataFrame]:
    """By name the streams of all static relations; those that were not read yet are read now."""
    found = [operator for operator in graph.sources.values() if operator.kind == "static"]
    if found:
        (lineage.folder / "static").mkdir(exist_ok=True)
    return {each.title: _stream(spark, graph, each, lineage.folder / "static" / f"{each.title}.rows") for each in found}


def _stream(spark: SparkSession, graph: Graph, operator: Operator, path: Path) -> DataFrame:
    if not path.exists():
        _read(spark, graph, operator, path)
    columns = ", ".join(f"c{i} {column.handle.dataType().sql()}" for i, column in enumerate(operator.row))
    schema = columns or StructType([])  # nothing is read of rows that are only counted
    return spark.readStream.format(SOURCE).schema(schema).option("path", str(path)).load()


def _read(spark: SparkSession, graph: Graph, operator: Operator, path: Path) -> None:
    try:
        graph.door.writeStatic(spark._jsparkSession, operator.parts["plan"], str(path))
    except (Py4JJavaError, PySparkException) as error:
        raise EngineError(
            f"{operator.parts['origin']} cannot be read",
            detail=last_cause(error),
            hint="Nothing has run yet. Mend the file; then compute anew: penstock reset PIPELINE",
        ) from error
