"""Apache Kafka, as tests and `make kafka` start it."""

from services.kafka.cluster import Cluster, Node, cluster_in
from services.processes import free_ports

__all__ = ["Cluster", "Node", "cluster_in", "free_ports"]
