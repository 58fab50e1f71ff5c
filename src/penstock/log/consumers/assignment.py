"""Assignment: which member reads which partitions.

Everybody who has asked for a topic gets its fair share; who has a partition keeps it as long as that is fair. The
answer follows from what is given alone.
"""

from collections.abc import Mapping, Sequence

Partition = tuple[str, int]
"""A topic, and the number of one of its partitions."""


def assigned(
    asked: Mapping[str, Sequence[str]], partitions: Sequence[Partition], before: Mapping[Partition, str]
) -> dict[Partition, str]:
    """For each partition the member that is to read it; `asked` has the topics of each member."""
    able = {topic: sorted(m for m, topics in asked.items() if topic in topics) for topic, _ in partitions}
    wanted: dict[Partition, str] = {}
    load = dict.fromkeys(asked, 0)
    for each in sorted(partitions):
        if before.get(each) in able[each[0]]:
            wanted[each] = before[each]
            load[before[each]] += 1
    for each in sorted(partitions):
        if each not in wanted and able[each[0]]:
            wanted[each] = min(able[each[0]], key=lambda member: (load[member], member))
            load[wanted[each]] += 1
    while move := _fairer(wanted, able, load):
        partition, member = move
        load[wanted[partition]] -= 1
        load[member] += 1
        wanted[partition] = member
    return wanted


def _fairer(
    wanted: Mapping[Partition, str], able: Mapping[str, Sequence[str]], load: Mapping[str, int]
) -> tuple[Partition, str] | None:
    """A partition whose member has at least two more than another that could have it, and that other."""
    for partition in sorted(wanted, key=lambda each: (-load[wanted[each]], each)):
        least = min(able[partition[0]], key=lambda member: (load[member], member))
        if load[wanted[partition]] - load[least] >= 2:
            return partition, least
    return None
