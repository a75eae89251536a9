"""Rows split by partition: which rows belong together, and under which path their files lie.

Vectorised over batches: a Python object is made per partition found, never per row. It knows
partition specs and the spelling of partition paths; files are written in `write`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote_plus

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.data.metadata_columns import column_at, path_of
from frazil.filter.transforms import joint_array
from frazil.format.values.types import arrow_type, scalar_value
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import VoidTransform
from frazil.iceberg.types import IcebergType, UUIDType
from frazil.value_classes import dataclass, field

_MAX_SEGMENT_BYTES: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Partition:
    """One partition: its values by partition field id, as plain values, and its path.

    Compared by identity: a null and the text "null" have the same path, and NaN is not itself.
    """

    values: Mapping[int, Any] = field(default_factory=dict)
    path: str = ""


UNPARTITIONED: Final = Partition()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A partition field resolved against the schema."""

    field: PartitionField
    source_paths: tuple[tuple[int, ...], ...]
    source_types: tuple[IcebergType, ...]
    result_type: IcebergType

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        if isinstance(self.field.transform, VoidTransform):
            return pa.nulls(batch.num_rows, arrow_type(self.result_type))
        sources = [column_at(batch, path) for path in self.source_paths]
        return joint_array(self.field.transform, sources, self.source_types)

    def segment(self, value: Any) -> str:
        text = f"{quote_plus(self.field.name, safe='')}={quote_plus(self._human(value), safe='')}"
        if len(text) <= _MAX_SEGMENT_BYTES:
            return text
        import hashlib  # which loads OpenSSL

        # File systems limit the length of a name; readers never rely on it.
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return f"{text[: _MAX_SEGMENT_BYTES - 17].rstrip('%')}-{digest}"

    def _human(self, value: Any) -> str:
        if isinstance(self.result_type, UUIDType) and value is not None:
            value = uuid.UUID(bytes=value)
        try:
            return str(self.field.transform.to_human_string(self.result_type, value))
        except (OverflowError, ValueError):  # a date that Python's calendar does not reach
            return str(value)


class Partitioner:
    """Splits batches of one schema by one spec; the same partition is the same object."""

    def __init__(self, spec: PartitionSpec, schema: Schema) -> None:
        self._parts = tuple(_resolved(part, schema) for part in spec.fields)
        self._known: dict[tuple[Any, ...], Partition] = {}

    @property
    def types(self) -> dict[int, pa.DataType]:
        """Arrow types of the partition values by partition field id."""
        return {part.field.field_id: arrow_type(part.result_type) for part in self._parts}

    def split(self, batch: pa.RecordBatch) -> Iterator[tuple[Partition, pa.RecordBatch]]:
        """The rows of each partition, in the order they have in the batch."""
        if not self._parts:
            yield UNPARTITIONED, batch
            return
        encoded = [
            pc.dictionary_encode(part.values(batch), null_encoding="encode") for part in self._parts
        ]
        codes = np.zeros(batch.num_rows, dtype=np.int64)
        for column in encoded:
            indices = arrow_values.to_numpy(column.indices)
            codes = codes * len(column.dictionary) + indices
            if len(encoded) > 1:
                _, codes = np.unique(codes, return_inverse=True)
        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
        starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        if len(starts) == 1:
            yield self._partition(encoded, 0), batch
            return
        for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
            rows = order[start:end]
            # A copy per partition: a slice would keep the whole batch alive in a slow partition.
            yield self._partition(encoded, int(rows[0])), pc.take(batch, arrow_values.array(rows))

    def _partition(self, encoded: list[pa.DictionaryArray], row: int) -> Partition:
        values = tuple(
            scalar_value(column.dictionary[column.indices[row].as_py()]) for column in encoded
        )
        # By text, so that one NaN is another and 0.0 is not -0.0.
        key = tuple(repr(value) for value in values)
        partition = self._known.get(key)
        if partition is None:
            parts = zip(self._parts, values, strict=True)
            path = "/".join(part.segment(value) for part, value in parts)
            ids = (part.field.field_id for part in self._parts)
            partition = Partition(values=dict(zip(ids, values, strict=True)), path=path)
            self._known[key] = partition
        return partition


def _resolved(part: PartitionField, schema: Schema) -> _Part:
    types = tuple(schema.find_field(source).field_type for source in part.source_ids)
    return _Part(
        field=part,
        source_paths=tuple(path_of(schema, source) for source in part.source_ids),
        source_types=types,
        result_type=part.transform.result_type(types[0]),
    )
