"""Corrected times: when something occurred, by the clock of who received it.

A device tells when it occurred and when it sent that, both by its own clock; the receiver tells when it came. The clock
was behind by received less sent (which counts the way it took as well), so that much is added. Where one of the three
is missing, or the clock would be wrong by more than `bound`, the time is when it was received, or if that is missing,
when it occurred; such records are counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

BOUND = timedelta(days=1)


@dataclass(frozen=True)
class Correction:
    """The columns that a corrected time is made from."""

    occurred: str
    sent: str
    received: str
    bound: timedelta = BOUND

    @property
    def columns(self) -> tuple[str, str, str]:
        return self.occurred, self.sent, self.received


def with_times(correction: Correction, name: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with the corrected times in the column `name`, whatever stood there."""
    occurred, sent, received = (_number(batch, column) for column in correction.columns)
    moved = pc.add(occurred, pc.subtract(received, sent))
    times = pc.if_else(_usable(correction, batch), moved, pc.coalesce(received, occurred))
    at = batch.schema.get_field_index(name)
    return batch.set_column(at, batch.schema.field(at), times.cast(batch.schema.field(at).type))


def uncorrected(correction: Correction, batch: pa.RecordBatch) -> int:
    """How many records could not be corrected."""
    return len(batch) - int(_usable(correction, batch).true_count)


def _usable(correction: Correction, batch: pa.RecordBatch) -> pa.BooleanArray:
    occurred, sent, received = (_number(batch, column) for column in correction.columns)
    wrong = pc.abs(pc.subtract(received, sent))
    within = pc.less_equal(wrong, correction.bound // timedelta(microseconds=1)).fill_null(False)
    return pc.and_(within, occurred.is_valid())


def _number(batch: pa.RecordBatch, column: str) -> pa.Array:
    return batch.column(column).cast(pa.int64())


def correction_json(correction: Correction) -> dict[str, Any]:
    bound = correction.bound // timedelta(microseconds=1)
    return {"occurred": correction.occurred, "sent": correction.sent, "received": correction.received, "bound": bound}


def correction_of(found: Mapping[str, Any]) -> Correction:
    bound = timedelta(microseconds=found["bound"])
    return Correction(found["occurred"], found["sent"], found["received"], bound)
