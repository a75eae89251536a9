"""A v2 or v3 table that PyIceberg wrote, upgraded in place."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.table import Table

from frazil.format.metadata import metadata_json
from frazil.format.metadata.metadata import History, TableMetadata
from frazil.iceberg.pyiceberg_values import pyiceberg_schema
from tests.support.trees import SCHEMA


def legacy_table(folder: Path, *, version: int = 2) -> Table:
    """An empty table of PyIceberg's, whose manifests are Avro."""
    catalog = InMemoryCatalog("old", warehouse=f"file://{folder}")
    catalog.create_namespace("old")
    return catalog.create_table(
        "old.table",
        pyiceberg_schema(SCHEMA),
        location=f"file://{folder}/table",
        properties={"format-version": str(version)},
    )


def rows(*ids: int) -> pa.Table:
    """Rows of the table."""
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), pa.field("country", pa.string())]
    )
    return pa.table([pa.array(ids, pa.int64()), pa.array(["x"] * len(ids))], schema=schema)


def upgraded(table: Table) -> tuple[TableMetadata, History]:
    """The table's metadata as v4, its snapshots as they are."""
    path = table.metadata_location.removeprefix("file://")
    metadata, history = metadata_json.loads(Path(path).read_bytes(), path=path)
    return metadata.upgraded(now_ms=metadata.last_updated_ms), history
