"""Columns of views: as the log declares them, and which of them can be a key."""

from penstock.engine.nodes import Handle
from penstock.errors import EngineError, SchemaError, did_you_mean
from penstock.model import View
from penstock.schema import Decimal, Scalar, Schema, Type, parse_schema, parse_type, type_text


def schema_of(struct: Handle) -> Schema:
    """A view's columns, all nullable."""
    fields = [f"`{f.name().replace('`', '``')}` {f.dataType().sql()}" for f in struct.fields()]
    return parse_schema(", ".join(fields))


def check_columns(view: View, struct: Handle) -> None:
    """That the log can keep them, where the view is kept."""
    if view.options.store == "none":
        return
    try:
        schema_of(struct)
    except SchemaError as error:
        raise (_unknown(view, struct) or _misnamed(view, error)) from error


def _unknown(view: View, struct: Handle) -> EngineError | None:
    """What is said of the first column that has a type which cannot be declared; nothing where there is none."""
    for field in struct.fields():
        try:
            parse_type(text := field.dataType().sql())
        except SchemaError:
            return EngineError(
                f'column "{field.name()}" of view "{view.name}" cannot be kept',
                detail=f"Its type is {text}, which the log does not have.",
                hint="Cast it to another one: CAST(... AS STRING).",
                spot=view.spot,
            )
    return None


def _misnamed(view: View, error: SchemaError) -> EngineError:
    return EngineError(
        f'the columns of view "{view.name}" cannot be kept',
        detail=f"{error.primary[:1].upper()}{error.primary[1:]}. {error.detail}".rstrip(),
        hint="Give the column a name of its own: SELECT ... AS name.",
        spot=view.spot,
    )


def can_be_key(struct: Handle, names: tuple[str, ...]) -> bool:
    """Whether a view can have these columns as its key: stores do not compare nested values."""
    return all(_is_plain(parse_type(f.dataType().sql())) for f in struct.fields() if f.name() in names)


def _is_plain(type_: Type) -> bool:
    return isinstance(type_, Scalar | Decimal)


def declared_key(view: View, struct: Handle) -> tuple[str, ...]:
    """The columns of a view's declared key as the view spells them; none where none was declared."""
    types = {f.name(): f.dataType().sql() for f in struct.fields()} if view.options.key else {}
    return tuple(_key_column(view, name, types) for name in view.options.key or ())


def _key_column(view: View, name: str, types: dict[str, str]) -> str:
    found = next((each for each in types if each.lower() == name.lower()), None)
    if found is None:
        raise EngineError(
            f'column "{name}" does not exist in view "{view.name}"',
            detail=f"The columns are {', '.join(types)}.",
            hint=did_you_mean(name, types, otherwise="A key consists of the view's columns."),
            spot=view.key_spot or view.spot,
        )
    if not _is_plain(type_ := parse_type(types[found])):
        raise EngineError(
            f'column "{found}" cannot be part of the key of view "{view.name}"',
            detail=f"Its type is {type_text(type_)}.",
            hint="Keys are numbers, strings, binary, dates and timestamps.",
            spot=view.key_spot or view.spot,
        )
    return found
