"""Where the tables of a pipeline's views are kept when not beside it: `postgresql://USER@HOST:PORT/DATABASE`."""

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from penstock.errors import ModelError, without_secrets

SCHEMES = ("postgresql", "postgres")
HINT = "Write postgresql://USER@HOST:PORT/DATABASE; the password may stand in PGPASSWORD or in ~/.pgpass."


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


def store_of(text: str) -> OnPostgres:
    """`postgresql://HOST/DATABASE?schema=NAME`  =>  OnPostgres"""
    try:
        found = urlsplit(text)
        _ = found.port  # raises where it is no number
    except ValueError:
        raise _unknown() from None
    if found.scheme not in SCHEMES or not text.startswith(f"{found.scheme}://") or found.fragment:
        raise _unknown()
    given = parse_qsl(found.query, keep_blank_values=True)
    schema = [value for name, value in given if name == "schema"]
    rest = urlencode([pair for pair in given if pair[0] != "schema"])
    return OnPostgres(urlunsplit((found.scheme, found.netloc, found.path, rest, "")), schema[-1] if schema else "")


def _unknown() -> ModelError:
    return ModelError("this is no address of a store", detail="Tables of views can be kept in PostgreSQL.", hint=HINT)
