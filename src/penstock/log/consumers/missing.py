"""Messages that a queue should deliver and that are gone, because retention has taken them: refused, or skipped and
counted, as the queue was told.
"""

from collections.abc import Sequence

import apsw

from penstock.errors import LogError
from penstock.log.consumers import acks, deliveries
from penstock.log.consumers.deliveries import Declared
from penstock.log.consumers.source import Source


def present(db: apsw.Connection, source: Source, queue: Declared) -> list[int]:
    """The next offset of each partition that was never given out, and is there."""
    fronts, begins = deliveries.fronts(db, queue.name), source.begins(queue.topic)
    if gone := deliveries.gone(db, queue.name, begins):
        acks.take_in_all(db, source.folder, queue.name)  # what was acknowledged is not missed
        gone = deliveries.gone(db, queue.name, begins)
    unseen = {part: first for part, first in enumerate(begins) if fronts[part] < first}
    if not gone and not unseen:
        return fronts
    if queue.missing == "fail":
        raise _refusal(queue, begins, fronts, gone)
    deliveries.forget(db, queue.name, gone)
    deliveries.move_fronts(db, queue.name, unseen)
    deliveries.skip(db, queue.name, len(gone) + sum(first - fronts[part] for part, first in unseen.items()))
    return deliveries.fronts(db, queue.name)


def _refusal(
    queue: Declared, begins: Sequence[int], fronts: Sequence[int], gone: Sequence[tuple[int, int]]
) -> LogError:
    part, offset = min([*gone, *((p, f) for p, f in enumerate(fronts) if f < begins[p])])
    return LogError(
        f'messages of queue "{queue.name}" are gone',
        detail=f'Offset {offset} of partition {part} of "{queue.topic}" was not acknowledged; the partition begins at '
        f"{begins[part]}.",
        hint=f"To go on without them: penstock log queue change {queue.name} --missing skip",
    )
