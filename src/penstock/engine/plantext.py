"""The plan of a pipeline as text, for people: drawn from what `explain` took out of the graph."""

from collections.abc import Iterator, Sequence

from penstock.engine.explain import Answer, Explained, Input, Link, Part

KEPT = {
    "table": "a table and its changes",
    "topic": "its changes only",
    "files": "files and its changes",
    "none": "nothing",
}


def plan_text(plan: Explained, view: str | None = None) -> str:
    """The plan, or what of it one view needs."""
    links = [link for link in plan.links if view is None or any(view in part.readers for part in link.parts)]
    answers = [answer for answer in plan.answers if view in (None, answer.name)]
    return "\n".join(_lines(plan, links, answers, view))


def _lines(plan: Explained, links: Sequence[Link], answers: Sequence[Answer], view: str | None) -> Iterator[str]:
    counts = [_counted(len(plan.answers), "view"), _counted(plan.levels, "level"), _counted(len(plan.links), "chain")]
    yield f"pipeline {plan.pipeline}: {', '.join(counts)}" + (f"; what view {view} needs" if view else "")
    level = None
    for link in links:
        if link.level != level:
            level = link.level
            yield from ("", f"level {level}")
        yield f"  chain by {link.key}"
        for part in link.parts:
            if view is None or view in part.readers:
                yield from _part_lines(part)
    yield ""
    for answer in answers:
        yield from _answer_lines(answer)
    yield from _warning_lines([part for link in links for part in link.parts if view is None or view in part.readers])


def _part_lines(part: Part) -> Iterator[str]:
    yield f"    #{part.number} {part.does}"
    yield f"       from    {_sources(part.inputs)}"
    yield f"       keeps   {part.state}"
    yield f"       state   {part.bound}"
    shared = ", shared" if len(part.readers) > 1 else ""
    yield f"       for     {', '.join(part.readers)}{shared}"


def _warning_lines(parts: Sequence[Part]) -> Iterator[str]:
    """What will fill the disk one day, if records keep coming."""
    endless = [part for part in parts if part.bound.streams]
    if endless:
        yield ""
    for part in endless:
        yield f"warning: the state of #{part.number} is {part.bound}"


def _answer_lines(answer: Answer) -> Iterator[str]:
    yield f"view {answer.name} ({', '.join(answer.columns)}), {key_text(answer)}"
    yield f"       from    {_sources(answer.inputs)}"
    yield f"       keeps   {kept_text(answer)}"
    if answer.shown:
        yield f"       shown   {answer.shown}"
    if answer.late:
        yield f"       late    {answer.late}"


def key_text(answer: Answer) -> str:
    return f"key {', '.join(answer.key)}" if answer.key else "no key: a bag of rows"


def kept_text(answer: Answer) -> str:
    return KEPT[answer.kept] + (f", by {', '.join(answer.partition_by)}" if answer.partition_by else "")


def _sources(inputs: Sequence[Input]) -> str:
    return "; ".join(f"{each.source} where {each.where}" if each.where else each.source for each in inputs)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
