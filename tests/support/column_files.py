"""Column files as tests see them: entries as Parquet has them, and files of other writers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import frazil
from frazil.commit.change import Change
from frazil.commit.column_edits import ColumnEdit
from frazil.format.entries.column_files import ColumnFile


def local(table: frazil.Table, name: str) -> Path:
    return Path(f"{table.location}/{name}".removeprefix("file://"))


def entries(table: frazil.Table) -> list[dict[str, Any]]:
    """Entries of the root as Parquet has them."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.root_manifest is not None
    return list(pq.read_table(local(table, snapshot.root_manifest)).to_pylist())


def live(table: frazil.Table) -> list[dict[str, Any]]:
    return [entry for entry in entries(table) if entry["tracking"]["status"] not in (2, 3)]


def handmade(
    table: frazil.Table,
    columns: dict[str, tuple[int, list[Any]]],
    *,
    ids: tuple[int, ...] | None = None,
    row_group_size: int = 3,
    kept: tuple[str, ...] = (),
) -> None:
    """Commit a column file for the first data file, as another writer may have written it."""
    fields = [
        pa.field(n, pa.array(values).type, metadata={"PARQUET:field_id": str(id)})
        for n, (id, values) in columns.items()
    ]
    data = pa.table([values for _, values in columns.values()], schema=pa.schema(fields))
    own = ids or tuple(id for id, _ in columns.values())
    commit_file(table, data, ids=own, row_group_size=row_group_size, kept=kept)


def commit_file(
    table: frazil.Table,
    data: pa.Table,
    *,
    ids: tuple[int, ...],
    row_group_size: int,
    kept: tuple[str, ...] = (),
    name: str | None = None,
    stats_ids: frozenset[int] | None = None,
) -> None:
    """The same with columns whose types have field ids; statistics of these ids are given up."""
    (entry, *_) = sorted(live(table), key=lambda entry: entry["tracking"]["first_row_id"])
    name = name or f"data/{len(list(local(table, 'data').iterdir()))}.parquet"
    pq.write_table(data, local(table, name), row_group_size=row_group_size)
    file = ColumnFile(
        location=name,
        field_ids=ids,
        file_format="parquet",
        file_size_in_bytes=local(table, name).stat().st_size,
    )
    stale = stats_ids or frozenset(ids)
    edit = ColumnEdit(location=entry["location"], file=file, replaces=kept, stats_ids=stale)
    handle = replace(table._handle)
    handle.refresh()
    handle.commit(Change(columns=(edit,)))
