"""Publishing: the records of a topic go to an exchange, each at least once, and none is passed over.

How far they have gone is remembered after RabbitMQ has confirmed them. So after a kill, or a cut connection, those that
were on their way are sent again, under the same message-id. What RabbitMQ cannot route, or AMQP has no room for,
becomes a dead letter.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

import amqp

from penstock.capture.amqp.address import Address
from penstock.capture.amqp.decoding import Refused
from penstock.capture.amqp.encoding import Encode, Routing, check_size, encoder, message_id
from penstock.capture.amqp.feeds import Feed, GroupFeed, OnKafka, ProducerFeed
from penstock.capture.amqp.letters import Position, append_letters, declare_letters, letter_out
from penstock.capture.amqp.link import Gone, Link, Parcel
from penstock.capture.amqp.tally import Say, Stop, Tally, Told
from penstock.capture.amqp.waiting import Patience
from penstock.errors import BadRecord
from penstock.log import Log, Record, Topic
from penstock.log.protocol import AnyEntry, AnyLog

AT_ONCE = 500
IDLE_SECONDS = 0.1
LAST_SECONDS = 3.0
"""Who is to stop waits so long for what is on its way: it need not be sent again then."""
SESSION = timedelta(seconds=10)


@dataclass
class Going:
    """A record on its way; `sent`: it may be there already."""

    position: Position
    parcel: Parcel
    sent: bool = False


class Publishing:
    def __init__(  # noqa: PLR0913 (what it works with, and whom it tells)
        self,
        log: AnyLog,
        address: Address,
        topic: str,
        routing: Routing,
        *,
        name: str,
        say: Say,
        stop: Stop,
        told: Told,
        session: timedelta = SESSION,
    ) -> None:
        self._log = log
        self._address = address
        self._topic = topic
        self._routing = routing
        self._name = name
        self._session = session
        self._say, self._stop, self._told = say, stop, told
        self._patience = Patience(address, say, stop)
        self._encoding: tuple[Topic, Encode] | None = None
        self._encoder()  # refuses what cannot be
        declare_letters(log, name)
        self._going: list[Going] = []
        self._dead: dict[Position, Record] = {}
        self._alone = False
        self.tally = Tally()

    def run(self, *, once: bool = False) -> None:
        """Until `stop` says so; with `once`, until all records that are there have gone over."""
        feed = self._feed()
        try:
            while not self._stop():
                try:
                    with Link(self._address, self._say) as link:
                        link.confirm(self._routing.exchange)
                        self._patience.there()
                        if self._serve(link, feed, once=once):
                            return
                except Gone as gone:
                    self._patience.wait(str(gone))
        finally:
            feed.close()

    def _feed(self) -> Feed:
        if isinstance(self._log, Log):
            return GroupFeed(self._log, self._name, self._topic, self._session)
        return ProducerFeed(cast(OnKafka, self._log), self._name, self._topic, self._bad)

    def _serve(self, link: Link, feed: Feed, *, once: bool) -> bool:
        """True when everything has gone over and that is the end."""
        while not self._stop():
            if not self._going:
                self._take(feed.poll(AT_ONCE))
            self._send_all(link)
            if not self._going:
                self._commit(feed)
                if once and feed.is_over():
                    return True
            link.pump(0)
        return False

    def _commit(self, feed: Feed) -> None:
        """All that was polled is there, or a dead letter."""
        append_letters(self._log, self._name, self._dead)
        self.tally.letters += len(self._dead)
        self._dead = {}
        if not feed.commit():
            self._say("Another member of the group has got a part of the partitions: some records are sent twice.")

    def _take(self, entries: Sequence[AnyEntry]) -> None:
        encode = self._encoder()
        for entry in entries:
            going = Going((entry.topic, entry.partition, entry.offset), encode(entry))
            try:
                check_size(going.parcel)
                self._going.append(going)
            except Refused as refused:
                self._bury(going, str(refused))

    def _send_all(self, link: Link) -> None:
        """Sends what is to go until all of it is there; ends early when it is time to stop."""
        while self._going and not self._stop():
            batch = self._going[:1] if self._alone else list(self._going)
            try:
                self._send(link, batch)
            except Gone as gone:
                self._told(self.tally)
                if isinstance(gone.__cause__, amqp.PreconditionFailed | amqp.ContentTooLarge | amqp.FrameError):
                    self._single_out(batch, str(gone))
                raise
            self._told(self.tally)
        self._alone = self._alone and bool(self._going)

    def _send(self, link: Link, batch: Sequence[Going]) -> None:
        self.tally.repeated += sum(going.sent for going in batch)
        for going in batch:
            going.sent = True
        sent = link.send([going.parcel for going in batch])
        try:
            until = float("inf")
            while len(sent.taken) + len(sent.refused) < len(batch) and time.monotonic() < until:
                link.pump(IDLE_SECONDS)
                until = min(until, time.monotonic() + LAST_SECONDS) if self._stop() else until
        finally:
            self._settle(batch, sent.taken, sent.returned)
        if sent.refused:
            for at in sent.refused:
                batch[at].sent = False  # it is surely not there
            self._patience.wait(f"it refused {len(sent.refused)} of {len(batch)} messages")
        else:
            self._patience.there()

    def _settle(self, batch: Sequence[Going], taken: set[int], returned: dict[int, str]) -> None:
        for at, why in returned.items():
            self._bury(batch[at], f"RabbitMQ has no queue for it: {why}")
        self.tally.messages += len(taken - returned.keys())
        done = {id(batch[at]) for at in taken | returned.keys()}
        self._going = [going for going in self._going if id(going) not in done]

    def _single_out(self, batch: Sequence[Going], why: str) -> None:
        """RabbitMQ has ended the channel because of one of them: sent alone, it shows which."""
        if self._alone and len(batch) == 1:
            self._bury(batch[0], f"RabbitMQ refuses it: {why}")
            self._going = [going for going in self._going if going is not batch[0]]
        self._alone = True

    # Dead letters

    def _bury(self, going: Going, reason: str) -> None:
        key, exchange = going.parcel.routing_key, going.parcel.exchange
        message, position = going.parcel.message, going.position
        self._dead[position] = letter_out(message, reason, exchange=exchange, routing_key=key, position=position)

    def _bad(self, bad: BadRecord) -> None:
        """A message of Kafka that is no record."""
        message = amqp.Message(bad.found[1] or b"", message_id=message_id(self._log.identity, bad.position))
        reason, exchange = f"{bad.primary}. {bad.detail}", self._routing.exchange
        self._dead[bad.position] = letter_out(message, reason, exchange=exchange, routing_key="", position=bad.position)

    def _encoder(self) -> Encode:
        """For the columns that the topic has by now."""
        topic = self._log.topic(self._topic)
        if self._encoding is None or self._encoding[0].schema != topic.schema:
            self._encoding = topic, encoder(self._log.identity, topic, self._routing)
        return self._encoding[1]
