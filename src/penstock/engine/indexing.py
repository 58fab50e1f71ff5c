"""Indexes of a view: the columns that its declaration names, as the view spells them."""

from penstock.errors import EngineError, did_you_mean
from penstock.model import View
from penstock.schema import Decimal, Scalar, Schema, type_text


def index_columns(view: View, schema: Schema) -> tuple[tuple[str, ...], ...]:
    """The columns of each index; refuses those that the view does not have, or that cannot be looked for."""
    return tuple(tuple(_column(view, name, schema) for name in columns) for columns in view.options.index or ())


def _column(view: View, name: str, schema: Schema) -> str:
    found = next((each for each in schema.columns if each.name.lower() == name.lower()), None)
    if found is None:
        raise EngineError(
            f'column "{name}" does not exist in view "{view.name}"',
            detail=f"The columns are {', '.join(schema.names)}.",
            hint=did_you_mean(name, schema.names, otherwise="An index is on the view's columns."),
            spot=view.index_spot or view.spot,
        )
    if not isinstance(found.type, Scalar | Decimal):
        raise EngineError(
            f'view "{view.name}" cannot have an index on "{found.name}"',
            detail=f"Its type is {type_text(found.type)}; an index is on numbers, strings, binary, dates and times.",
            hint="Make a column of what is looked for: tags[0] AS first_tag.",
            spot=view.index_spot or view.spot,
        )
    return found.name
