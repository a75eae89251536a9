"""Small tables with a history, for tests of changes and of care."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

import frazil
from frazil.storage import StorageCall
from frazil.table import Catalog, Table

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
SMALL = {"write.root.max-data-entries": "3", "write.leaf.target-entries": "6"}
"""Properties with which a few files are enough for leaves."""

Row = tuple[int, str | None]


def catalog_in(folder: Path) -> Catalog:
    """An embedded catalog."""
    return frazil.connect(folder / "warehouse")


def new_table(
    folder: Path, *, name: str = "shop.orders", properties: Mapping[str, str] | None = None
) -> Table:
    """An empty table of two columns, `id` and `v`."""
    return catalog_in(folder).create_table(name, SCHEMA, properties=properties)


def rows(*ids: int, v: str = "x") -> pa.Table:
    """Rows of these ids."""
    return pa.table({"id": list(ids), "v": [v] * len(ids)}, schema=SCHEMA)


def snapshot_id(table: Table) -> int:
    """The current snapshot."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return int(snapshot.snapshot_id)


def state_of(table: Table, as_of: Any = None) -> dict[int, Row]:
    """Rows by row id."""
    scan = table.scan(columns=["id", "v", "_row_id"], as_of=as_of)
    return {row["_row_id"]: (row["id"], row["v"]) for row in scan.to_pylist()}


def told(feed: Iterable[Mapping[str, Any]]) -> list[tuple[int, str, str, int]]:
    """A feed of rows in short: ordinal, change, value and id, in a fixed order."""
    short = [(r["_change_ordinal"], r["_change_type"], r["v"], r["id"]) for r in feed]
    return sorted(short)


def replay(start: Mapping[int, Row], feed: Iterable[Mapping[str, Any]]) -> dict[int, Row]:
    """What a feed makes of rows; a change that does not fit them fails."""
    state = dict(start)
    came = ("insert", "update_postimage")
    for row in sorted(feed, key=lambda r: (r["_change_ordinal"], r["_change_type"] in came)):
        key, value = row["_row_id"], (row["id"], row["v"])
        if row["_change_type"] in came:
            assert key not in state
            state[key] = value
        else:
            assert state.pop(key) == value
    return state


def files_of(table: Table) -> set[str]:
    """Every file below the table, as relative paths, but the metadata JSON."""
    head = f"{table.location}/"
    found = {file.path.removeprefix(head) for file in table._handle.storage.list(table.location)}
    return {path for path in found if not path.endswith(".json")}


def read_names(calls: Iterable[StorageCall]) -> list[str]:
    """Kinds of files that were read, each file once, in the order of the first read."""
    paths = dict.fromkeys(call.path for call in calls if call.verb == "read")
    return [path.rpartition("/")[2].partition("-")[0] for path in paths]


def eight_commits(tmp_path: Path) -> Table:
    """Eight appends of two rows each in a small tree, then a delete."""
    made = new_table(tmp_path, properties=SMALL)
    for number in range(8):
        made.append(rows(number, number + 100))
    made.delete("id = 3")
    return made
