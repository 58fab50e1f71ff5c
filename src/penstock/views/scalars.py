"""Scalars: numbers, texts, times and bytes of a column as SQLite keeps them, and back; the table is in `values.py`."""

from collections.abc import Sequence
from decimal import Decimal as Number
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.schema import Decimal, Scalar, arrow_type


def encoded_scalars(type_: Scalar | Decimal, array: pa.Array) -> list[Any]:
    if isinstance(type_, Decimal):
        return [_plain_digits(text) for text in array.cast(pa.string()).to_pylist()]
    match type_.name:
        case "FLOAT" | "DOUBLE":
            return _floats(array)
        case "STRING":
            return _strings(array)
        case "TIMESTAMP":
            return _times(array, zone="Z")
        case "TIMESTAMP_NTZ" | "DATE":
            return _times(array)
        case "BOOLEAN":
            return list(array.cast(pa.int8()).to_pylist())
        case _:
            return list(array.to_pylist())


def decoded_scalars(type_: Scalar | Decimal, values: Sequence[Any]) -> pa.Array:
    wanted = arrow_type(type_)
    if isinstance(type_, Decimal):
        return pa.array(values, pa.string()).cast(wanted)
    match type_.name:
        case "FLOAT" | "DOUBLE":
            return pa.array([None if value is None else float(value) for value in values], wanted)
        case "STRING":
            return _string_array(values)
        case "TIMESTAMP" | "TIMESTAMP_NTZ" | "DATE":
            return _time_array(values, wanted)
        case "BOOLEAN":
            return pa.array([None if value is None else bool(value) for value in values], wanted)
        case _:
            return pa.array(values, wanted)


def _floats(array: pa.Array) -> list[Any]:
    values: list[Any] = pc.add(array, pa.scalar(0.0, array.type)).to_pylist()  # -0.0 + 0.0 is 0.0
    if pc.any(pc.is_nan(array)).as_py():
        return ["NaN" if value != value else value for value in values]
    return values


def _plain_digits(text: str | None) -> str | None:
    """Arrow writes small decimals with an exponent."""
    return format(Number(text), "f") if text is not None and "E" in text else text


def _strings(array: pa.Array) -> list[Any]:
    try:
        return list(array.to_pylist())
    except UnicodeDecodeError:  # Spark makes strings of any bytes
        return [None if data is None else _text_or_bytes(data) for data in array.cast(pa.binary()).to_pylist()]


def _text_or_bytes(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _string_array(values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(values, pa.string())
    except ValueError:  # half characters, or bytes that are not UTF-8
        data = [value.encode(errors="surrogateescape") if isinstance(value, str) else value for value in values]
        return pc.cast(pa.array(data, pa.binary()), options=pc.CastOptions(pa.string(), allow_invalid_utf8=True))


def _times(array: pa.Array, *, zone: str = "") -> list[Any]:
    plain = array if pa.types.is_date(array.type) else array.cast(pa.timestamp("us"))
    texts = plain.cast(pa.string())
    far = pc.starts_with(texts, "<")  # "<value out of range>": a year that Arrow does not write
    if pc.any(far).as_py():
        texts = pc.if_else(far, pa.array(_far_times(plain), pa.string()), texts)
    texts = pc.replace_substring(texts, pattern=" ", replacement="T", max_replacements=1)
    return list(pc.binary_join_element_wise(texts, zone, "").to_pylist())


def _far_times(array: pa.Array) -> list[str | None]:
    numbers, unit = (pa.int32(), "D") if pa.types.is_date(array.type) else (pa.int64(), "us")
    times = array.cast(numbers).fill_null(0).to_numpy().astype(f"datetime64[{unit}]")
    texts: list[str] = np.datetime_as_string(times).tolist()
    return [text if valid else None for text, valid in zip(texts, array.is_valid().to_pylist(), strict=True)]


def _time_array(values: Sequence[Any], wanted: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, pa.string()).cast(wanted)
    except pa.ArrowInvalid:  # a year that Arrow writes but does not read
        unit, plain = ("D", pa.date32()) if pa.types.is_date(wanted) else ("us", pa.timestamp("us"))
        texts = ["NaT" if text is None else text.removesuffix("Z") for text in values]
        return pa.array(np.array(texts, dtype=f"datetime64[{unit}]"), plain).cast(wanted)
