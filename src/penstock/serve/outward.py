"""Outward: how far what leaves the pipeline has come, for Prometheus: a store on a server, webhooks, e-mails
and topics of Kafka.
"""

from collections.abc import Iterator
from contextlib import suppress

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from penstock.errors import PenstockError
from penstock.serve.source import Served
from penstock.serve.unread import Unread
from penstock.views.lineage import current
from penstock.views.sinks.delivering import dead_topic
from penstock.views.sinks.memory import held_in

KINDS = ("webhook", "email", "kafka")
OF_SINKS = (
    ("penstock_sink_lag_frames", "Frames with changes of the view that the sink has not delivered yet."),
    ("penstock_sink_failed_attempts", "Attempts that have failed for what it delivers next."),
    ("penstock_sink_dead_letters", "Messages that it has given up."),
)


class Outward(Collector):
    def __init__(self, served: Served) -> None:
        self._served = served
        self._unread: dict[tuple[str, str], Unread] = {}

    def collect(self) -> Iterator[Metric]:
        with suppress(PenstockError):
            yield from self._store()
        families = [GaugeMetricFamily(name, what, labels=["view", "sink"]) for name, what in OF_SINKS]
        with suppress(PenstockError):
            for labels, values in self._sinks():
                for family, value in zip(families, values, strict=True):
                    family.add_metric(labels, value)
        yield from (family for family in families if family.samples)

    def _store(self) -> Iterator[Metric]:
        if self._served.elsewhere is None:
            return
        stand = self._served.elsewhere.stand()
        yield GaugeMetricFamily("penstock_store_up", "Whether the store on its server answers.", value=stand.reachable)
        if stand.position is not None:
            frame, lag = stand.position.frame, self._served.lag_elsewhere(stand.position)
            yield GaugeMetricFamily("penstock_store_frame", "The frame at which that store stands.", value=frame)
            yield GaugeMetricFamily("penstock_store_lag_frames", "Frames that it does not know yet.", value=lag)

    def _sinks(self) -> Iterator[tuple[list[str], list[float]]]:
        log, lineage = self._served.log, current(self._served.log, self._served.pipeline.name)
        known = {topic.name for topic in log.topics()}
        for view in self._served.pipeline.views if lineage is not None else ():
            for kind in KINDS:
                held = None if self._served.sinks is None else held_in(self._served.sinks / f"{view.name}.{kind}.json")
                if held is None or lineage is None or held.log != log.identity:
                    continue
                topic = f"{lineage.pipeline}.{lineage.number}.{view.name}"
                unread = self._unread.setdefault((kind, topic), Unread(log, [topic], ()))
                letters = dead_topic(lineage.pipeline, view.name, kind)
                dead = log.describe(letters).partitions[0].end if letters in known else 0
                lag = unread.count(held.frame, log.mark().next_frame)
                yield [view.name, kind], [lag, held.attempts, dead]
