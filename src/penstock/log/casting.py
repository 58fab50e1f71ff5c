"""Casting: an Arrow column becomes one of its topic's type, where the kind of its values stays and none is lost.

Integers become wider, or narrower where all of them fit; floats wider; decimals of another scale, times of another
unit where that is exact; text, bytes and lists change only how they lie in memory. Arrow alone would also read
numbers out of text and round a double to a decimal.
"""

from collections.abc import Callable

import pyarrow as pa
from pyarrow import types

Test = Callable[[pa.DataType], bool]
BYTES: tuple[Test, ...] = (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)
LISTS: tuple[Test, ...] = (
    types.is_list,
    types.is_large_list,
    types.is_fixed_size_list,
    types.is_list_view,
    types.is_large_list_view,
)
KINDS: tuple[Test, ...] = (
    types.is_boolean,
    types.is_integer,
    types.is_floating,
    types.is_decimal,
    lambda type_: types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_),
    lambda type_: any(is_(type_) for is_ in BYTES),
    types.is_timestamp,
    types.is_date,
    lambda type_: any(is_(type_) for is_ in LISTS),
    types.is_map,
    types.is_struct,
)


class Misfit(Exception):
    """Why a column cannot become one of the wanted type."""


def cast(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The array with the wanted type; `Misfit` where that would change a value or its kind."""
    if array.type == wanted:
        return array
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not _same_kind(array.type, wanted):
        raise Misfit("these are different kinds of values.")
    try:
        return array.cast(wanted, safe=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise Misfit(str(error)) from error


def _same_kind(found: pa.DataType, wanted: pa.DataType) -> bool:
    if types.is_null(found):
        return True
    kind = next(is_ for is_ in KINDS if is_(wanted))
    if not kind(found):
        return False
    if types.is_floating(wanted):
        return bool(found.bit_width <= wanted.bit_width)
    if types.is_map(wanted):
        return _same_kind(found.key_type, wanted.key_type) and _same_kind(found.item_type, wanted.item_type)
    if types.is_list(wanted):
        return _same_kind(found.value_type, wanted.value_type)
    return not types.is_struct(wanted) or _same_fields(found, wanted)


def _same_fields(found: pa.StructType, wanted: pa.StructType) -> bool:
    """Fields may be missing, and are NULL then; Arrow would drop those that are unknown."""
    names = [field.name for field in found]
    known = {field.name: field.type for field in wanted}
    return len(set(names)) == len(names) and all(
        field.name in known and _same_kind(field.type, known[field.name]) for field in found
    )
