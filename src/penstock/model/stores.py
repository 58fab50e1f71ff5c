"""Where the tables of a pipeline's views are kept when not beside it: `postgresql://USER@HOST:PORT/DATABASE`, or
`redis://HOST:PORT/NUMBER`.
"""

from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit

from penstock.errors import ModelError, without_secrets

POSTGRES = ("postgresql", "postgres")
REDIS = ("redis", "rediss")
HINT = (
    "Write postgresql://USER@HOST:PORT/DATABASE, the password in PGPASSWORD or ~/.pgpass; "
    "or redis://HOST:PORT/NUMBER, the password in REDISCLI_AUTH."
)


@dataclass(frozen=True, repr=False)
class OnPostgres:
    """A database of PostgreSQL. `schema` is the one that the views get there, that of the pipeline's name if it is
    empty. As text it has no password.
    """

    url: str
    schema: str = ""

    def __str__(self) -> str:
        return without_secrets(self.url)

    def __repr__(self) -> str:
        return f"OnPostgres({str(self)!r}, {self.schema!r})"


@dataclass(frozen=True, repr=False)
class OnRedis:
    """A database of Redis. The names of all keys there begin with `prefix`, with the pipeline's name if it is empty.
    As text it has no password.
    """

    url: str
    prefix: str = ""

    def __str__(self) -> str:
        return without_secrets(self.url)

    def __repr__(self) -> str:
        return f"OnRedis({str(self)!r}, {self.prefix!r})"


OnServer = OnPostgres | OnRedis


def store_of(text: str) -> OnServer:
    """`postgresql://HOST/DATABASE?schema=NAME`  =>  OnPostgres, `redis://HOST/0?prefix=NAME`  =>  OnRedis"""
    try:
        found = urlsplit(text)
        _ = found.port  # raises where it is no number
    except ValueError:
        raise _unknown() from None
    if not text.startswith(f"{found.scheme}://") or found.fragment:
        raise _unknown()
    if found.scheme in POSTGRES:
        return OnPostgres(*_without(found, "schema"))
    if found.scheme in REDIS and found.hostname:
        return OnRedis(*_without(found, "prefix"))
    raise _unknown()


def _without(found: SplitResult, word: str) -> tuple[str, str]:
    """The address without what is ours in it, and that."""
    given = parse_qsl(found.query, keep_blank_values=True)
    ours = [value for name, value in given if name == word]
    rest = urlencode([pair for pair in given if pair[0] != word])
    return urlunsplit((found.scheme, found.netloc, found.path, rest, "")), ours[-1] if ours else ""


def _unknown() -> ModelError:
    return ModelError(
        "this is no address of a store", detail="Tables of views can be kept in PostgreSQL or Redis.", hint=HINT
    )
