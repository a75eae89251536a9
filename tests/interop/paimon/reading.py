"""Rows of an adopted table, in the text form of the peers."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa

from frazil.catalog.backend import CatalogBackend
from frazil.commit.handle import TableHandle
from frazil.data.read.read_files import Reading
from frazil.filter.text.filter_text import parse
from frazil.format.metadata.metadata import Snapshot
from frazil.iceberg.expressions import AlwaysTrue, BooleanExpression
from frazil.properties.registry import NAME_MAPPING
from frazil.scan.plan import plan
from frazil.scan.tasks import TaskReader, tasks_of
from tests.interop.paimon.text_form import row_lines


def handle_of(catalog: CatalogBackend, name: str) -> TableHandle:
    """A handle on a table of the catalog."""
    head = catalog.load(name)
    return TableHandle.of(name, head, catalog.storage(head.state.metadata.location))


def rows_of(
    handle: TableHandle, snapshot: Snapshot | None, *, where: str | None = None
) -> list[str]:
    """The rows of a snapshot under its own schema, as sorted lines."""
    metadata = handle.metadata
    schema = metadata.schema() if snapshot is None else metadata.schema_of(snapshot)
    condition: BooleanExpression = AlwaysTrue() if where is None else parse(where, schema)
    planned = plan(handle.reader(), snapshot, schema=schema, where=condition)
    reading = Reading(
        storage=handle.storage,
        schema=schema,
        table_schema=schema,
        row_filter=condition,
        specs=metadata.specs_by_id(),
        name_mapping=NAME_MAPPING.of(metadata.properties),
    )
    reader = TaskReader(reading)
    batches = [
        batch for task in tasks_of(planned, location=handle.location) for batch in reader.read(task)
    ]
    return row_lines(pa.Table.from_batches(batches)) if batches else []


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file under a folder with a digest of its content."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
