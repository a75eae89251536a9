"""Counts distinct values of columns, and keeps them as Iceberg does: a theta sketch per column in a
Puffin file that the metadata names for one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from frazil.commit.change import Change
from frazil.commit.handle import TableHandle
from frazil.commit.loop import discard
from frazil.commit.updates import SetStatistics
from frazil.errors import CommitUnknown, FrazilError, InvalidInput
from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.format import paths
from frazil.format.entries.stats import is_ordered
from frazil.format.metadata.metadata import Snapshot
from frazil.format.metadata.statistics_files import (
    BLOB_TYPE,
    DISTINCT,
    ThetaSketch,
    statistics_entry,
)
from frazil.format.values.single_value import encode_bounds
from frazil.format.values.types import arrow_type
from frazil.format.vectors.puffin import NewBlob, write_blobs
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import NestedField
from frazil.rows.scan import Scan
from frazil.value_classes import frozen


@frozen
class TableStatistics:
    """What was counted: distinct values by column, in which snapshot, and the file that has it."""

    snapshot_id: int
    statistics_file: str
    distinct: Mapping[str, int]


Counter = Callable[[Scan], Iterable[Mapping[str, ThetaSketch]]]
"""Sketches of the columns of a scan, each of a part of its rows."""


def compute_statistics(
    handle: TableHandle,
    snapshot: Snapshot,
    schema: Schema,
    columns: Sequence[str] | None,
    *,
    counter: Counter | None = None,
) -> TableStatistics:
    """Count the distinct values of columns, by default of every top-level primitive one.
    `counter` reads the rows elsewhere than here."""
    fields = _fields(schema, columns)
    scan = Scan(_handle=handle, snapshot=snapshot, columns=tuple(fields), schema_override=schema)
    sketches = {name: ThetaSketch() for name in fields}
    for part in (_counted_here if counter is None else counter)(scan):
        for name, sketch in part.items():
            sketches[name].merge(sketch)
    blobs = [
        NewBlob(
            type=BLOB_TYPE,
            fields=(field.field_id,),
            snapshot_id=int(snapshot.snapshot_id),
            sequence_number=snapshot.sequence_number,
            data=sketches[name].to_bytes(),
            properties={DISTINCT: str(sketches[name].estimate)},
        )
        for name, field in fields.items()
    ]
    data, footer_size = write_blobs(blobs, created_by="frazil")
    stored = f"metadata/{snapshot.snapshot_id}-{handle.context.new_id()}.stats"
    path = paths.resolve(handle.location, stored)
    entry = statistics_entry(
        snapshot,
        path=stored,
        size=len(data),
        footer_size=footer_size,
        distinct={field.field_id: sketches[name].estimate for name, field in fields.items()},
    )
    handle.storage.write_new(path, data)
    try:
        handle.commit(Change(updates=(SetStatistics(entry=entry),)))
    except CommitUnknown:
        raise
    except FrazilError:
        discard(handle.storage, [path])
        raise
    return TableStatistics(
        snapshot_id=int(snapshot.snapshot_id),
        statistics_file=path,
        distinct={name: sketch.estimate for name, sketch in sketches.items()},
    )


def _fields(schema: Schema, columns: Sequence[str] | None) -> dict[str, NestedField]:
    if columns is None:
        return {field.name: field for field in schema.fields if _is_counted(field)}
    index = ColumnIndex.of(schema)
    chosen: dict[str, NestedField] = {}
    for name in columns:
        column = index.named(name)
        if not _is_counted(column.field):
            raise InvalidInput(
                f"column '{column.name}' is a {column.field.field_type}; distinct values are "
                "counted of primitive columns"
            )
        chosen[column.name] = column.field
    if not chosen:
        raise InvalidInput("columns is empty; name at least one column")
    return chosen


def _is_counted(field: NestedField) -> bool:
    kind = field.field_type
    return is_ordered(kind)


def _counted_here(scan: Scan) -> Iterator[dict[str, ThetaSketch]]:
    yield sketches_of(scan.read_schema, scan.to_batches())


def sketches_of(schema: Schema, batches: Iterable[pa.RecordBatch]) -> dict[str, ThetaSketch]:
    """A sketch of each column of some rows."""
    sketches = {field.name: ThetaSketch() for field in schema.fields}
    for batch in batches:
        for at, field in enumerate(schema.fields):
            values = batch.column(at)
            if isinstance(values.type, pa.BaseExtensionType):
                values = values.storage
            stored = values.cast(arrow_type(field.field_type))
            sketches[field.name].add(encode_bounds(stored, field.field_type))
    return sketches


__all__ = ["TableStatistics", "compute_statistics", "sketches_of"]
