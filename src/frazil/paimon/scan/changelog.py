"""The changes of a Paimon table's rows, snapshot by snapshot.

A table with a changelog producer keeps its changes in files of their own, which changelog manifests
list. Without one, an append-only table's changes are the files that each commit added and removed;
those of a primary-key table cannot be known and are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
import pyarrow as pa

from frazil.data.arrow_rows import ArrowRows
from frazil.data.read.read_files import Reading, read_file
from frazil.data.schema import arrow_schema
from frazil.data.slices import DataFileSlice
from frazil.errors import Unsupported
from frazil.iceberg.expressions import AlwaysTrue
from frazil.iceberg.schema import Schema
from frazil.paimon.adoption.takeover import SPEC_ID
from frazil.paimon.read import as_iceberg
from frazil.paimon.read.manifest_tables import ADD, DELETE
from frazil.paimon.read.paimon_table import PaimonTable
from frazil.paimon.read.snapshot import PaimonSnapshot
from frazil.paimon.read.table_schema import KIND
from frazil.paimon.scan.keyed_rows import KeyedFile, keyed_rows
from frazil.paimon.scan.paimon_plan import schema_of
from frazil.scan.row_changes import CHANGE_COLUMNS, ChangeType
from frazil.value_classes import dataclass

_TYPES: Final = (
    ChangeType.INSERT,
    ChangeType.UPDATE_PREIMAGE,
    ChangeType.UPDATE_POSTIMAGE,
    ChangeType.DELETE,
)
"""What Paimon's row kinds +I, -U, +U and -D mean, in their order."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class PaimonChanges(ArrowRows):
    """Changed rows of some snapshots, oldest first, with the columns of a change feed."""

    _table: PaimonTable
    snapshots: tuple[PaimonSnapshot, ...]
    schema: Schema

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns of the table and those of a feed."""
        return pa.schema([*arrow_schema(self.schema), *CHANGE_COLUMNS])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The changes as record batches."""
        for ordinal, snapshot in enumerate(self.snapshots):
            yield from self._of(snapshot, ordinal)

    def to_reader(self) -> pa.RecordBatchReader:
        """The changes as an Arrow stream."""
        return pa.RecordBatchReader.from_batches(self.arrow_schema, self.to_batches())

    def to_arrow(self) -> pa.Table:
        """All changes as an Arrow table."""
        return pa.Table.from_batches(list(self.to_batches()), schema=self.arrow_schema)

    def _of(self, snapshot: PaimonSnapshot, ordinal: int) -> Iterator[pa.RecordBatch]:
        version = self._table.schema(snapshot.schema_id)
        if snapshot.changelog_manifest_list is not None:
            entries = self._table.changelog_entries(snapshot)
            files = [KeyedFile(source=source) for source in self._slices(snapshot, entries)]
            rows = keyed_rows(files, self._reading(snapshot))
            kinds = rows[KIND].combine_chunks()
            names = pa.array(_TYPES).take(kinds)
            yield from self._batches(
                rows.select(range(len(self.schema.fields))), names, snapshot, ordinal
            )
            return
        if version.has_primary_key:
            if snapshot.commit_kind == "COMPACT" or not snapshot.delta_record_count:
                return
            raise Unsupported(
                f"{self._table.location}: snapshot {snapshot.id} has no changelog, so the rows "
                "that it replaced are unknown; set the option changelog-producer in Paimon for "
                "later snapshots, or compare two scans",
                feature="paimon-changelog",
            )
        if snapshot.commit_kind == "COMPACT":
            return
        entries = self._table.delta_entries(snapshot)
        for kind, change in ((DELETE, ChangeType.DELETE), (ADD, ChangeType.INSERT)):
            chosen = entries.filter(pa.array(entries["kind"].to_numpy() == kind))
            for source in self._slices(snapshot, chosen):
                for batch in read_file(source, self._reading(snapshot)):
                    table = pa.Table.from_batches([batch])
                    names = pa.array([change.value] * batch.num_rows, pa.string())
                    yield from self._batches(table, names, snapshot, ordinal)

    def _slices(self, snapshot: PaimonSnapshot, entries: pa.Table) -> Sequence[DataFileSlice]:
        files = self._table.state_of(snapshot, entries).files
        return [
            DataFileSlice(
                path=path,
                file_format=path.rpartition(".")[2],
                record_count=rows,
                file_size_in_bytes=size,
            )
            for path, rows, size in zip(
                *(files[name].to_pylist() for name in ("location", "row_count", "file_size")),
                strict=True,
            )
        ]

    def _reading(self, snapshot: PaimonSnapshot) -> Reading:
        current = self._table.schema(snapshot.schema_id)
        return Reading(
            storage=self._table.storage,
            schema=self.schema,
            table_schema=self.schema,
            row_filter=AlwaysTrue(),
            specs={SPEC_ID: as_iceberg.partition_spec(current)},
            name_mapping=as_iceberg.name_mapping(current, self._table.schemas().values()),
            verify_checksums=False,
        )

    def _batches(
        self, rows: pa.Table, types: pa.Array, snapshot: PaimonSnapshot, ordinal: int
    ) -> Iterator[pa.RecordBatch]:
        count = rows.num_rows
        at = _EPOCH + timedelta(milliseconds=snapshot.time_ms)
        kinds = [
            types,
            pa.array(np.full(count, ordinal), pa.int64()),
            pa.array(np.full(count, snapshot.id), pa.int64()),
            pa.array([at] * count, CHANGE_COLUMNS.field("_commit_timestamp").type),
        ]
        table = pa.Table.from_arrays([*rows.columns, *kinds], schema=self.arrow_schema)
        yield from table.to_batches()


def changes(
    table: PaimonTable, snapshots: Sequence[PaimonSnapshot], columns: Sequence[str] | None = None
) -> PaimonChanges:
    """The changes that these snapshots made, in the columns of the last of them."""
    from frazil.paimon.scan.paimon_scan import chosen

    state = table.state(snapshots[-1] if snapshots else None)
    schema = schema_of(table, state)
    if columns is not None:
        schema = chosen(schema, columns)
    return PaimonChanges(table, tuple(snapshots), schema)
