"""Every operation that changes a table, as a function, with the rows it must leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

import frazil
from frazil.format.metadata.metadata import MAIN
from frazil.rows.editor import RowEditor
from tests.support.rewrites import rewrite_files

SCHEMA = pa.schema([("id", pa.int64()), ("colour", pa.string())])
SMALL_TREE = {
    "write.root.max-data-entries": "2",
    "write.leaf.target-entries": "4",
    "commit.retry.min-wait-ms": "0",
    "commit.retry.max-wait-ms": "0",
}


def rows(first: int, last: int, colour: str = "red") -> pa.Table:
    return pa.table({"id": range(first, last), "colour": [colour] * (last - first)}, schema=SCHEMA)


def prepared(folder: Path) -> frazil.Table:
    """A table with a leaf, files in the root, a deletion vector and a branch."""
    table = frazil.connect(folder).create_table("shop.things", SCHEMA, properties=SMALL_TREE)
    for index in range(4):
        table.append(rows(index * 5, index * 5 + 5))
    table.delete("id = 1 or id = 17")
    table.tag("kept", table.snapshots()[1])
    return table


def content(table: frazil.Table) -> dict[int, str]:
    """Rows as the table gives them."""
    found = table.scan().to_pylist()
    assert len({row["id"] for row in found}) == len(found), "a row is there twice"
    return {row["id"]: row["colour"] for row in found}


BEFORE = {id: "red" for id in range(20) if id not in (1, 17)}


def _rewrite(table: frazil.Table) -> None:
    files = table.scan().plan().files.pylist("location")
    editor = RowEditor(handle=table._handle, metadata=table.metadata, snapshot=None, branch=MAIN)
    columns = ["id", "colour", "_row_id", "_last_updated_sequence_number"]
    merged = editor.write(table.scan(columns=columns).to_batches(), with_lineage=True)
    rewrite_files(table, files, merged)


def _transaction(table: frazil.Table) -> None:
    with table.transaction() as tx:
        tx.append(rows(100, 103))
        tx.delete("id = 101 or id = 5")
        tx.update({"colour": "blue"}, where="id = 100")


def _fast_forward(table: frazil.Table) -> None:
    table.branch("audit", create=True).append(rows(200, 201))
    table.fast_forward(to="audit")


@dataclass(frozen=True)
class Operation:
    """Something to do to a prepared table."""

    run: Callable[[frazil.Table], object]
    after: dict[int, str]


OPERATIONS = {
    "append": Operation(
        lambda t: t.append(rows(100, 103)), {**BEFORE, **dict.fromkeys(range(100, 103), "red")}
    ),
    "append to leaves": Operation(
        lambda t: [t.append(rows(100, 101)), t.append(rows(101, 102)), t.append(rows(102, 103))],
        {**BEFORE, **dict.fromkeys(range(100, 103), "red")},
    ),
    "delete rows": Operation(
        lambda t: t.delete("id = 2 or id = 12"),
        {id: c for id, c in BEFORE.items() if id not in (2, 12)},
    ),
    "delete files": Operation(
        lambda t: t.delete("id < 10"), {id: c for id, c in BEFORE.items() if id >= 10}
    ),
    "update": Operation(
        lambda t: t.update({"colour": "blue"}, where="id >= 18"),
        {id: "blue" if id >= 18 else c for id, c in BEFORE.items()},
    ),
    "update of columns": Operation(
        lambda t: t.update({"colour": "blue"}, where="id >= 9", mode="columns"),
        {id: "blue" if id >= 9 else c for id, c in BEFORE.items()},
    ),
    "new columns": Operation(lambda t: t.add_columns({"note": "colour || id"}), BEFORE),
    "columns by key": Operation(
        lambda t: t.merge_columns({"id": [2, 18], "colour": ["blue", "blue"]}, on="id"),
        {**BEFORE, 2: "blue", 18: "blue"},
    ),
    "merge of column files": Operation(
        lambda t: [t.add_columns({"note": "colour || id"}), t.compact(merge_columns=True)], BEFORE
    ),
    "upsert": Operation(
        lambda t: t.upsert(rows(19, 21, "gold"), on=["id"]), {**BEFORE, 19: "gold", 20: "gold"}
    ),
    "overwrite": Operation(
        lambda t: t.overwrite(rows(50, 52), where="id > 4"),
        {**{id: c for id, c in BEFORE.items() if id <= 4}, 50: "red", 51: "red"},
    ),
    "transaction": Operation(
        _transaction,
        {**{id: c for id, c in BEFORE.items() if id != 5}, 100: "blue", 102: "red"},
    ),
    "rewrite": Operation(_rewrite, BEFORE),
    "compact metadata": Operation(lambda t: t.compact_metadata(), BEFORE),
    "rewrite manifests": Operation(lambda t: t.rewrite_manifests(), BEFORE),
    "expire": Operation(
        lambda t: t.expire_snapshots(older_than=datetime.now(UTC) + timedelta(days=1), keep_last=1),
        BEFORE,
    ),
    "evolve schema": Operation(
        lambda t: t.evolve_schema().add_column("note", "string").commit(), BEFORE
    ),
    "branch": Operation(lambda t: t.branch("audit", create=True).append(rows(200, 201)), BEFORE),
    "tag": Operation(lambda t: t.tag("now"), BEFORE),
    "rollback": Operation(lambda t: t.rollback("kept"), dict.fromkeys(range(10), "red")),
    "fast forward": Operation(_fast_forward, {**BEFORE, 200: "red"}),
    "evolve partitions": Operation(
        lambda t: t.evolve_partitions().add("bucket[2](id)").commit(), BEFORE
    ),
    "set properties": Operation(lambda t: t.set_properties({"owner": "me"}), BEFORE),
    "remove orphans": Operation(
        lambda t: t.remove_orphan_files(older_than=datetime.now(UTC) + timedelta(days=1)), BEFORE
    ),
}
