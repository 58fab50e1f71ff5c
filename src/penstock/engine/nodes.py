"""The algebra: what is left of a query when Catalyst has optimized it.

It is small and closed. Expressions are handles to Catalyst's own, to be bound later; `plan` is the node of Catalyst's
tree that a node was read from, by which equal trees are found.
"""

from dataclasses import dataclass
from typing import Any

Handle = Any
"""An object of the JVM, held through py4j."""


@dataclass(frozen=True)
class Column:
    """A column of a node's output: Catalyst's attribute, with its name and its number at hand."""

    name: str
    id: int
    handle: Handle


@dataclass(frozen=True)
class Scan:
    """A declared relation, or another view."""

    relation: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Static:
    """Rows that do not change: VALUES, or files that are read once."""

    columns: tuple[Column, ...]
    plan: Handle


@dataclass(frozen=True)
class Project:
    items: tuple[Handle, ...]
    child: "Node"


@dataclass(frozen=True)
class Filter:
    condition: Handle
    child: "Node"


@dataclass(frozen=True)
class Union:
    columns: tuple[Column, ...]
    children: "tuple[Node, ...]"


@dataclass(frozen=True)
class Expand:
    """Every row once for each projection."""

    columns: tuple[Column, ...]
    projections: tuple[tuple[Handle, ...], ...]
    child: "Node"


@dataclass(frozen=True)
class Generate:
    """Every row with each of the rows that `generator` makes of it; `made` are its columns."""

    generator: Handle
    outer: bool
    kept: tuple[Column, ...]
    made: tuple[Column, ...]
    child: "Node"


@dataclass(frozen=True)
class Join:
    """On keys, with what is left of the condition."""

    columns: tuple[Column, ...]
    plan: Handle
    left: "Node"
    right: "Node"


@dataclass(frozen=True)
class Retained:
    """A join that is corrected for a limited time; `parts` says of which kind, on what keys, and for how long."""

    parts: Handle
    columns: tuple[Column, ...]
    plan: Handle
    left: "Node"
    right: "Node"


@dataclass(frozen=True)
class Beyond:
    """Records of the right side that come too late to correct left rows with their key, which are over at a time."""

    columns: tuple[Column, ...]
    plan: Handle
    left: "Node"
    right: "Node"


@dataclass(frozen=True)
class AsOf:
    """Every left row with the nearest right row in time; `parts` says of which kind, on what keys and which times."""

    parts: Handle
    columns: tuple[Column, ...]
    plan: Handle
    left: "Node"
    right: "Node"


@dataclass(frozen=True)
class Aggregate:
    columns: tuple[Column, ...]
    plan: Handle
    child: "Node"


@dataclass(frozen=True)
class Session:
    """Every row with the start of its session, `start`, behind it; `keys` are what rows of one session have in
    common.
    """

    keys: Handle
    start: Column
    columns: tuple[Column, ...]
    plan: Handle
    child: "Node"


@dataclass(frozen=True)
class Held:
    """Rows that are shown once they are complete, at the time `over`."""

    over: Handle
    columns: tuple[Column, ...]
    plan: Handle
    child: "Node"


@dataclass(frozen=True)
class Window:
    """Every row with the values of window functions behind it."""

    parts: Handle
    columns: tuple[Column, ...]
    plan: Handle
    child: "Node"


@dataclass(frozen=True)
class Top:
    """The rows from `offset` on, `limit` of them, in the order of `orders`, for each `partition`.

    With `counted` as ranks, the rows whose rank is no more than the limit; as groups, those whose dense rank is.
    """

    partition: tuple[Handle, ...]
    orders: tuple[Handle, ...]
    limit: int
    offset: int
    columns: tuple[Column, ...]
    plan: Handle
    child: "Node"
    counted: str = "rows"


@dataclass(frozen=True)
class Single:
    """The one row that there is, or none; several are an error of the batch."""

    columns: tuple[Column, ...]
    plan: Handle
    child: "Node"


@dataclass(frozen=True)
class Evaluate:
    """Every row with what Python functions give for it, `made`, behind it."""

    calls: tuple[Handle, ...]
    made: tuple[Column, ...]
    columns: tuple[Column, ...]
    plan: Handle
    child: "Node"


Stateful = Join | Retained | Beyond | AsOf | Aggregate | Session | Held | Window | Top | Single
Node = Scan | Static | Project | Filter | Union | Expand | Generate | Stateful | Evaluate
