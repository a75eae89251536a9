"""The model a table is held against: rows as plain dictionaries, one state per snapshot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import frazil
from frazil.format.metadata.metadata import MAIN, Snapshot
from frazil.rows.editor import RowEditor
from tests.support.rewrites import rewrite_files

Row = dict[int, Any]
"""Values of a row by field id."""

ID = 1
"""Field id of the column that identifies a row for the model; never evolved."""


@dataclass
class Version:
    """What one snapshot holds: rows and row ids by the value of the id column."""

    rows: dict[int, Row] = field(default_factory=dict)
    row_ids: dict[int, int] = field(default_factory=dict)

    def copy(self) -> Version:
        return Version({key: dict(row) for key, row in self.rows.items()}, dict(self.row_ids))


def rows_of(table: frazil.Table, snapshot: Snapshot | None) -> dict[int, Row]:
    """The rows of a snapshot as the table gives them, by field id."""
    if snapshot is None:
        return {}
    scan = table.scan(as_of=snapshot)
    ids = {column.name: column.field_id for column in scan.schema.fields}
    found: dict[int, Row] = {}
    for row in scan.to_pylist():
        by_id = {ids[name]: value for name, value in row.items()}
        assert by_id[ID] not in found, f"row {by_id[ID]} is there twice"
        found[by_id[ID]] = by_id
    return found


def projected(rows: dict[int, Row], field_ids: set[int]) -> dict[int, Row]:
    """Rows as a schema with these columns shows them: new columns null, dropped ones gone."""
    return {key: {id: row.get(id) for id in field_ids} for key, row in rows.items()}


def replay(
    start: dict[int, Row], changes: list[dict[str, Any]], names: dict[str, int]
) -> dict[int, Row]:
    """Apply a feed of row changes, step by step, and insist that each step makes sense."""
    rows = {key: dict(row) for key, row in start.items()}
    ordinals = [change["_change_ordinal"] for change in changes]
    assert ordinals == sorted(ordinals)
    for ordinal in sorted(set(ordinals)):
        step = [change for change in changes if change["_change_ordinal"] == ordinal]
        for change in step:
            row = {names[name]: change[name] for name in names}
            if change["_change_type"] in ("delete", "update_preimage"):
                assert rows.pop(row[ID]) == row, f"{change['_change_type']} of another row"
        for change in step:
            row = {names[name]: change[name] for name in names}
            if change["_change_type"] in ("insert", "update_postimage"):
                assert row[ID] not in rows, f"row {row[ID]} inserted twice"
                rows[row[ID]] = row
        before = sorted(c["_row_id"] for c in step if c["_change_type"] == "update_preimage")
        after = sorted(c["_row_id"] for c in step if c["_change_type"] == "update_postimage")
        assert before == after, "update images do not pair by row id"
    return rows


def compacted(table: frazil.Table) -> None:
    """Write all rows of a table again, as one set of files, with their row ids."""
    files = table.scan().plan().files
    if files.num_rows < 2:
        return
    columns = [column.name for column in table.schema.fields]
    rows = table.scan(columns=[*columns, "_row_id", "_last_updated_sequence_number"]).to_batches()
    editor = RowEditor(handle=table._handle, metadata=table.metadata, snapshot=None, branch=MAIN)
    rewrite_files(table, files.pylist("location"), editor.write(rows, with_lineage=True))
