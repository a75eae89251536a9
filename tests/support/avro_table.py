"""An Iceberg table of v2 whose data files are Avro: PyIceberg commits what fastavro wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fastavro
from pyiceberg import types as ice
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

import frazil

SCHEMA = Schema(
    ice.NestedField(1, "id", ice.LongType(), required=False),
    ice.NestedField(2, "name", ice.StringType(), required=False),
)
ROWS = [{"id": i, "name": f"näme {i}" if i % 3 else None} for i in range(40)]
"""Twenty rows a file."""


def upgraded_avro_table(catalog: frazil.Catalog, folder: Path) -> frazil.Table:
    """The table entered into a catalog as `old.avro` and upgraded there."""
    theirs = SqlCatalog("theirs", uri=f"sqlite:///{folder}/theirs.db", warehouse=f"file://{folder}")
    theirs.create_namespace("old")
    table = theirs.create_table("old.avro", SCHEMA, properties={"format-version": "2"})
    with table.transaction() as change, change.update_snapshot().fast_append() as append:
        for start in (0, 20):
            path = folder / f"{start}.avro"
            append.append_data_file(_data_file(path, ROWS[start : start + 20]))
    entered = catalog.register_table("old.avro", table.metadata_location)
    entered.upgrade()
    return entered


def _data_file(path: Path, rows: list[dict[str, Any]]) -> DataFile:
    schema = AvroSchemaConversion().iceberg_to_avro(SCHEMA, schema_name="table")
    with path.open("wb") as file:
        fastavro.writer(file, schema, rows, codec="deflate", sync_interval=100)
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"file://{path}",
        file_format=FileFormat.AVRO,
        partition=Record(),
        record_count=len(rows),
        file_size_in_bytes=path.stat().st_size,
        spec_id=0,
    )
