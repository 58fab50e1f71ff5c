"""Waiting for a broker that is away: longer each time, with some chance in it, and saying so."""

import random
import time

from penstock.capture.amqp.address import Address
from penstock.capture.amqp.tally import Say, Stop

FIRST_SECONDS = 0.2
MOST_SECONDS = 15.0
STEP_SECONDS = 0.05
LASTING_SECONDS = 5.0
"""Who was there for so long is waited for anew, a short time first."""


class Patience:
    def __init__(self, address: Address, say: Say, stop: Stop) -> None:
        self._address = address
        self._say = say
        self._stop = stop
        self._seconds = FIRST_SECONDS
        self._away = False
        self._since = time.monotonic()

    def wait(self, why: str) -> None:
        """Returns when it is time to try again, or to stop."""
        if time.monotonic() - self._since > LASTING_SECONDS and not self._away:
            self._seconds = FIRST_SECONDS
        seconds = self._seconds * random.uniform(0.75, 1.25)
        self._say(f"RabbitMQ at {self._address}: {why}; trying again in {seconds:.1f} s")
        self._away = True
        self._seconds = min(2 * self._seconds, MOST_SECONDS)
        pause(seconds, self._stop)

    def there(self) -> None:
        """It answers."""
        if self._away:
            self._since = time.monotonic()
            self._say(f"RabbitMQ at {self._address} is there again")
        self._away = False


def pause(seconds: float, stop: Stop) -> None:
    """Sleeps, unless it is time to stop."""
    until = time.monotonic() + seconds
    while not stop() and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, STEP_SECONDS))
