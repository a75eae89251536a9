"""Column files that Spark reads in place of their data files: where they have all that is asked."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from frazil import arrow_values
from frazil.data.metadata_columns import FILE, PARTITION_ID, POS, SPEC_ID
from frazil.format.entries.column_files import (
    column_files_of,
    have_column_files,
    with_column_files,
)
from frazil.iceberg.schema import Schema
from frazil.properties.registry import DATA_PATH
from frazil.rows.duckdb.duckdb_parts import MAX_FOOTERS, FilePart, parts_by_row
from frazil.rows.planned import Planned
from frazil.value_classes import replace

_COMPUTED: Final = frozenset({POS.field_id, FILE.field_id, SPEC_ID.field_id, PARTITION_ID})


def read_alone(planned: Planned, asked: Schema) -> Planned:
    """A plan whose files with column files are replaced by the one file that has all columns asked
    for. Its rows are those of the data file, in order, so that positions and vectors hold. Files of
    which several are needed stay as they are."""
    files = planned.plan.files
    if not have_column_files(files).any():
        return planned
    stored = [column for column in asked.fields if column.field_id not in _COMPUTED]
    found = {row: own for row, own in parts_by_row(planned, stored).items() if len(own) < 2}
    column_files = {row: own[0] for row, own in found.items() if own and not own[0].is_base}
    metadata = planned.scan._handle.metadata
    if len(column_files) > MAX_FOOTERS or (column_files and FILE.field_id in asked.field_ids):
        return planned
    storage = planned.scan._handle.storage

    def is_named_today(part: FilePart) -> bool:
        by_id = part.names_by_id(storage)
        return all(by_id[column.field_id] == column.name for column in part.columns)

    named = list(planned.scan._handle.reader().map(list(column_files.values()), is_named_today))
    if DATA_PATH.of(metadata.properties) is not None and not all(named):
        return planned  # files of this folder are taken to have the names of today
    locations, sizes = files.pylist("location"), files.pylist("file_size_in_bytes")
    for row, part in column_files.items():
        locations[row], sizes[row] = part.source.path, part.source.file_size_in_bytes
    held = [() if row in found else own for row, own in enumerate(column_files_of(files))]
    files = with_column_files(files, held)
    files = files.with_column("location", arrow_values.array(locations, pa.string()))
    files = files.with_column("file_size_in_bytes", arrow_values.array(sizes, pa.int64()))
    return replace(planned, plan=replace(planned.plan, files=files))


__all__ = ["read_alone"]
