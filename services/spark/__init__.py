"""A standalone cluster of Spark, as tests and `make cluster` start it."""

from services.spark.cluster import Member, SparkCluster, spark_cluster_in

__all__ = ["Member", "SparkCluster", "spark_cluster_in"]
