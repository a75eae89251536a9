"""Writing and reading data files in tests, without a table around them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from frazil.data.read.read_files import Reading, read_file
from frazil.data.schema import arrow_schema
from frazil.data.slices import DataFileSlice
from frazil.data.write.row_input import conformed
from frazil.data.write.write_files import write_rows
from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata.derived import DerivedColumn
from frazil.format.paths import resolve
from frazil.iceberg.partitioning import UNPARTITIONED, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.sorting import SortOrder
from frazil.storage import LocalStorage, Storage

STORAGE = LocalStorage()
WRITE_ID = uuid.UUID("00000000-0000-4000-8000-000000000001")


def write(
    data: Any,
    schema: Schema,
    location: str,
    *,
    spec: PartitionSpec = UNPARTITIONED,
    sort_order: SortOrder | None = None,
    derived: Sequence[DerivedColumn] = (),
    properties: Mapping[str, str] | None = None,
    storage: Storage = STORAGE,
    write_id: uuid.UUID | None = None,
    written: list[str] | None = None,
) -> EntryBatch:
    """Conform and write rows."""
    return write_rows(
        conformed(data, schema),
        storage=storage,
        location=location,
        schema=schema,
        spec=spec,
        sort_order=sort_order,
        derived=derived,
        properties=properties,
        write_id=write_id or uuid.uuid4(),
        written=written,
    )


def slice_of(entries: EntryBatch, location: str, index: int = 0, **changes: Any) -> DataFileSlice:
    """The slice a planner would make of an entry."""
    row = entries.row(index)
    given: dict[str, Any] = {
        "path": resolve(location, row["location"]),
        "file_format": row["file_format"],
        "record_count": row["record_count"],
        "file_size_in_bytes": row["file_size_in_bytes"],
        "spec_id": row.get("spec_id"),
        "partition": {
            int(key.removeprefix("partition.")): row.get(key)
            for key in entries.keys
            if key.startswith("partition.")
        },
    }
    return DataFileSlice(**(given | changes))


def file_slice(path: str, record_count: int, file_format: str = "parquet") -> DataFileSlice:
    """The slice of a whole local file."""
    return DataFileSlice(
        path=path,
        file_format=file_format,
        record_count=record_count,
        file_size_in_bytes=STORAGE.size(path),
    )


def read(source: DataFileSlice, schema: Schema, **options: Any) -> pa.Table:
    """All rows of a slice; options are those of `Reading` and of `read_file`."""
    parts = {key: options.pop(key) for key in ("dropped", "only", "equality") if key in options}
    options.setdefault("table_schema", schema)
    options.setdefault("storage", STORAGE)
    reading = Reading(schema=schema, **options)
    return pa.Table.from_batches(read_file(source, reading, **parts), arrow_schema(schema))
