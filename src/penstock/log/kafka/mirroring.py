"""Mirroring: a thread that follows the journal and keeps the mirror up with it, as long as the log is open.

`wait` returns when the mirror has all that was committed before an offset. Brokers that do not answer are waited for.
"""

import time
from collections import OrderedDict
from threading import Condition, Event, Thread

from confluent_kafka import KafkaError, Message

from penstock.errors import LogError, RecordsGone
from penstock.log.kafka.client import GATHERED, Client
from penstock.log.kafka.journal import said_in
from penstock.log.kafka.mirror import Behind, Mirror
from penstock.log.kafka.waiting import refusal

POLL_SECONDS = 0.05
QUIET_SECONDS = 2.0
"""After so long a silence the brokers are asked something: a consumer does not tell that they are away."""
REMEMBERED = 4096
"""So many frames are known by the offsets of their messages."""


class Mirroring:
    def __init__(self, client: Client, topic: str, mirror: Mirror) -> None:
        self._client = client
        self._topic = topic
        self._mirror = mirror
        self._ending = Event()
        self._moved = Condition()
        self._reached = 0
        self._frames: OrderedDict[int, int] = OrderedDict()
        self._failure: Exception | None = None
        self._thread = Thread(target=self._run, name="penstock-mirror", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ending.set()
        with self._moved:
            self._moved.notify_all()
        self._thread.join()

    def wait(self, end: int) -> None:
        """Until the mirror has all that lies before an offset of the journal."""
        with self._moved:
            while self._reached < end:
                self.check()
                self._moved.wait(POLL_SECONDS)

    def frame_at(self, offset: int) -> int:
        """The frame whose message has this offset, which was written lately."""
        self.wait(offset + 1)
        return self._frames[offset]

    def check(self) -> None:
        """Raises what ended the thread."""
        if self._failure is not None:
            raise self._failure
        if self._ending.is_set():
            raise LogError("the log is closed", hint="Open it again.")

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                try:
                    self._follow(*self._mirror.position())
                except Behind:
                    continue
        except Exception as error:
            self._failure = error

    def _follow(self, frame: int, offset: int) -> None:
        doing = f'following "{self._topic}"'
        self._check_kept(offset)
        with self._client.exact_consumer() as consumer:
            self._client.assign(consumer, self._topic, {0: offset})
            spell, heard = self._client.waiting.spell(doing), time.monotonic()
            while not self._ending.is_set():
                first = consumer.poll(POLL_SECONDS)
                found = [] if first is None else [first, *consumer.consume(GATHERED, timeout=0)]
                messages = []
                for message in found:
                    error = message.error()
                    if error is None:
                        messages.append(message)
                        spell.end()
                    elif error.code() == KafkaError._PARTITION_EOF:
                        offset = max(offset, message.offset() or 0)
                        spell.end()
                    elif error.fatal():
                        raise refusal(doing, error)
                    else:
                        spell.go_on(error)
                if not found and time.monotonic() - heard > QUIET_SECONDS:
                    self._client.ends(self._topic, [0])
                    heard = time.monotonic()
                if found:
                    heard = time.monotonic()
                frame, offset = self._taken(frame, messages, offset)

    def _check_kept(self, offset: int) -> None:
        """Frames are counted from the first message on: none of them may have gone."""
        [begin], [end] = self._client.begins(self._topic, [0]), self._client.ends(self._topic, [0])
        if begin > offset:
            raise RecordsGone(
                f'the order of the log has gone with the first messages of "{self._topic}"',
                detail=f"The first that Kafka has is offset {begin}; needed are those from offset {offset} on.",
                hint="Kafka must keep that topic for ever: cleanup.policy=delete, retention.ms=-1, retention.bytes=-1. "
                "What has gone comes back only from a copy.",
            )
        if end < offset:
            raise LogError(
                f'"{self._topic}" has lost messages that were read before',
                detail=f"It ends at offset {end}; this mirror has read up to offset {offset}.",
                hint="The brokers have lost what they had confirmed. Remove the mirror to take what is left; what was "
                "computed from more has to be computed anew.",
            )

    def _taken(self, frame: int, messages: list[Message], offset: int) -> tuple[int, int]:
        """Takes messages in, the first of which is this frame; the frame and the offset after them."""
        if messages:
            last = messages[-1].offset()
            assert last is not None
            offset = max(offset, last + 1)
            said = [(said_in(message.value() or b""), message.timestamp()[1] * 1000) for message in messages]
            self._mirror.extend(frame, said, offset)
        with self._moved:
            for number, message in enumerate(messages, frame):
                self._frames[message.offset() or 0] = number
            while len(self._frames) > REMEMBERED:
                self._frames.popitem(last=False)
            self._reached = max(self._reached, offset)
            self._moved.notify_all()
        return frame + len(messages), offset
