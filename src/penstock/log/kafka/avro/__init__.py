"""Values in Avro: rows become Avro's binary encoding, and back. docs/formats/kafka.md has which types go together.

The kernel reads the same (`kernel/src/penstock/kernel/avro`), with the same words where it cannot.
"""

from penstock.log.kafka.avro.encoded import Misfit, NotAvro
from penstock.log.kafka.avro.schemas import schema_of
from penstock.log.kafka.avro.values import Values, values_of

__all__ = ["Misfit", "NotAvro", "Values", "schema_of", "values_of"]
