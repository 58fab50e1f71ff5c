"""Kafka's own tools, as its scripts start them."""

import subprocess

from services.jars import Say, ServiceError, jars, program
from services.kafka.cluster import JAVA, VERSION

PACKAGES = (f"org.apache.kafka:kafka-tools:{VERSION}", "org.slf4j:slf4j-simple:1.7.36")
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def consumer_groups(servers: str, *words: str, say: Say = print) -> str:
    """What `kafka-consumer-groups.sh` says."""
    found = jars(f"kafka-tools-{VERSION}", PACKAGES, say=say)
    java = program("java", "Java 17 or newer is needed to run Kafka's tools", "Install a Java runtime.")
    command = [java, *JAVA, "-cp", f"{found}/*", GROUPS, "--bootstrap-server", servers, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ServiceError("kafka-consumer-groups failed", detail=done.stderr.strip(), hint="Is a broker there?")
    return done.stdout
