"""Partition values of entries, from their tuples or, where those are missing, from statistics.

An entry need not have a tuple: the bounds of the source column of an identity partition, or of the
derived column of any other, are its one value. Bounds that differ are an error, as a file lies in
one partition. Without bounds the value is null, as it is for a file whose rows have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.errors import FormatError
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import partition_key, stats_key
from frazil.format.metadata.metadata import TableMetadata
from frazil.iceberg.partitioning import PartitionSpec
from frazil.iceberg.transforms import IdentityTransform, VoidTransform
from frazil.value_classes import frozen


@frozen
class PartitionColumn:
    """A partition field, and the column whose statistics tell its value; None for none."""

    name: str
    key: str
    stats_id: int | None

    @property
    def stats_keys(self) -> tuple[str, ...]:
        """The columns of entries that it is recovered from."""
        if self.stats_id is None:
            return ()
        return tuple(stats_key(self.stats_id, name) for name in ("lower_bound", "upper_bound"))

    def values(self, entries: EntryBatch) -> pa.ChunkedArray:
        """The value of each entry, all of them of a spec with this field."""
        stored = entries.column(self.key)
        if self.stats_id is None or not stored.null_count:
            return stored
        lower, upper = (entries.column(key) for key in self.stats_keys)
        missing = pc.and_(pc.is_null(stored), pc.or_(pc.is_valid(lower), pc.is_valid(upper)))
        if not pc.any(missing).as_py():
            return stored
        same = pc.fill_null(pc.equal(lower, upper), False)
        for row in pc.indices_nonzero(pc.and_not(missing, same)).to_pylist():
            raise FormatError(
                f"the entry has no partition tuple, and {self.name} cannot be recovered: its "
                f"bounds are {lower[row].as_py()!r} and {upper[row].as_py()!r}",
                path=entries.column("location")[row].as_py(),
                field=self.name,
            )
        kind = lower.type if pa.types.is_null(stored.type) else stored.type
        return pc.coalesce(pc.cast(stored, kind), pc.cast(lower, kind))


@frozen
class PartitionColumns:
    """The partition fields of a table's specs, without those that partition by nothing."""

    by_spec: Mapping[int, tuple[PartitionColumn, ...]]

    @staticmethod
    def of(metadata: TableMetadata) -> PartitionColumns:
        """The fields of every spec."""
        derived = {
            expression.partition_field_id: int(expression.expr_id)
            for expression in metadata.expressions
            if expression.partition_field_id is not None
        }
        specs = {spec.spec_id: tuple(_columns(spec, derived)) for spec in metadata.partition_specs}
        return PartitionColumns(by_spec=specs)

    def of_spec(self, spec_id: int | None) -> Sequence[PartitionColumn]:
        """The fields of a spec; none for one that does not partition."""
        return () if spec_id is None else self.by_spec.get(spec_id, ())

    def recovered(self, entries: EntryBatch, spec_id: int | None) -> EntryBatch:
        """Entries of one spec, with the values that their tuples lack."""
        for part in self.of_spec(spec_id):
            values = part.values(entries)
            if values is not entries.column(part.key):
                entries = entries.with_column(part.key, values)
        return entries

    def stats_keys(self, spec_ids: set[int]) -> frozenset[str]:
        """What entries of these specs need, besides their tuples."""
        return frozenset(
            key for id in spec_ids for part in self.of_spec(id) for key in part.stats_keys
        )


def _columns(spec: PartitionSpec, derived: Mapping[int, int]) -> Iterator[PartitionColumn]:
    for part in spec.fields:
        if isinstance(part.transform, VoidTransform):
            continue
        is_identity = isinstance(part.transform, IdentityTransform)
        yield PartitionColumn(
            name=part.name,
            key=partition_key(part.field_id),
            stats_id=part.source_id if is_identity else derived.get(part.field_id),
        )


__all__ = ["PartitionColumn", "PartitionColumns"]
