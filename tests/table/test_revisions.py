"""A table that was written before revision 2026-10 was known: read, continued, taken back.

The files in `tests/support/tables/revision-1.12` were written by Frazil 0.1. Its twelve commits
are listed in `HISTORY` with the ids that were left after each.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.errors import Unsupported
from frazil.format.entries import manifest
from frazil.storage import local_path

STORED = Path(__file__).parents[1] / "support" / "tables" / "revision-1.12"
HISTORY = (
    ("append", {1, 2, 3}),
    ("append", {1, 2, 3, 4, 5, 6}),
    ("append", {1, 2, 3, 4, 5, 6, 7, 8, 9}),
    ("append", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}),
    ("delete", {1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}),
    ("append", {1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}),
    ("delete", {1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14}),
    ("delete", {1, 3, 4, 6, 7, 8, 9, 10, 12, 14}),  # by equality: 5 and 11
    ("delete", {1, 3, 4, 6, 7, 8, 10, 12, 14}),  # by equality: 9
    ("append", {1, 3, 4, 6, 7, 8, 10, 12, 14, 15}),
    ("delete", {1, 3, 7, 8, 10, 12, 14, 15}),
    ("overwrite", {1, 3, 7, 8, 10, 12, 14, 15}),
)
LAST = HISTORY[-1][1]


@pytest.fixture
def table(tmp_path: Path) -> frazil.Table:
    """The stored table in a catalog of its own."""
    place = tmp_path / "orders"
    shutil.copytree(STORED, place)
    metadata = place / "metadata" / "v12.metadata.json"
    metadata.write_text(metadata.read_text().replace("file:///somewhere/orders", place.as_uri()))
    catalog = frazil.connect(tmp_path / "warehouse")
    catalog.create_namespace("shop")
    return catalog.register_table("shop.orders", metadata.as_uri())


def _ids(table: frazil.Table, **options: object) -> set[int]:
    found = table.scan(**options).to_arrow().column("id").to_pylist()  # type: ignore[arg-type]
    assert len(found) == len(set(found))
    return set(found)


def _revisions(table: frazil.Table) -> Counter[str]:
    """Revisions of all roots and leaves that snapshots of the table name."""
    paths: set[str] = set()
    reader = table._handle.reader()
    for snapshot in table.snapshots():
        paths.add(snapshot.root_manifest or "")
        paths |= {leaf.location for leaf in reader.tree(snapshot).leaves()}
    return Counter(
        manifest.describe(Path(local_path(f"{table.location}/{path}")).read_bytes(), path=path)[
            "revision"
        ]
        for path in paths
    )


def _row(id: int, country: str) -> pa.Table:
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("country", pa.string()),
            pa.field("amount", pa.float64()),
        ]
    )
    return pa.table({"id": [id], "country": [country], "amount": [1.0]}, schema=schema)


def test_every_snapshot_of_the_old_table_reads(table: frazil.Table) -> None:
    snapshots = sorted(table.snapshots(), key=lambda snapshot: snapshot.sequence_number)
    assert [snapshot.operation for snapshot in snapshots] == [what for what, _ in HISTORY]
    for snapshot, (_, ids) in zip(snapshots, HISTORY, strict=True):
        assert _ids(table, as_of=snapshot) == ids
    assert _revisions(table) == {"1.12": 12 + 4}
    amounts = {row["id"]: row["amount"] for row in table.scan().to_pylist()}
    assert amounts == {id: id * 1.5 + (1 if id == 1 else 0) for id in LAST}
    assert table.check().ok


def test_its_changes_are_those_that_were_made(table: frazil.Table) -> None:
    before: set[int] = set()
    for ordinal, (_, ids) in enumerate(HISTORY):
        changes = [
            change for change in table.changes().to_pylist() if change["_change_ordinal"] == ordinal
        ]
        kinds = {"insert": ids - before, "delete": before - ids}
        if ordinal == len(HISTORY) - 1:
            kinds = {"update_preimage": {1}, "update_postimage": {1}}
        for kind, expected in kinds.items():
            found = {change["id"] for change in changes if change["_change_type"] == kind}
            assert found == expected, (ordinal, kind)
        before = ids


def test_a_commit_by_the_new_default_leaves_old_files_alone(table: frazil.Table) -> None:
    old = {path.name: path.read_bytes() for path in _folder(table).glob("metadata/*.parquet")}
    table.append(_row(100, "de"))
    table.delete("id = 3")
    assert _ids(table) == (LAST | {100}) - {3}
    assert _revisions(table)["1.12"] == 12 + 4
    assert _revisions(table)["2026-10"] >= 2
    for name, data in old.items():
        assert (_folder(table) / "metadata" / name).read_bytes() == data
    assert table.check().ok
    before = sorted(table.snapshots(), key=lambda snapshot: snapshot.sequence_number)[11]
    changes = [
        (change["_change_type"], change["id"]) for change in table.changes(since=before).to_pylist()
    ]
    assert changes == [("insert", 100), ("delete", 3)]


def test_the_old_revision_can_be_kept(table: frazil.Table) -> None:
    table.set_properties({"write.format-revision": "1.12"})
    table.append(_row(100, "de"))
    assert set(_revisions(table)) == {"1.12"}
    assert _ids(table) == LAST | {100}


def test_it_can_be_rolled_back_and_continued(table: frazil.Table) -> None:
    table.append(_row(100, "de"))
    fourth = sorted(table.snapshots(), key=lambda snapshot: snapshot.sequence_number)[4]
    table.rollback(fourth)
    assert _ids(table) == HISTORY[4][1]
    table.delete("id = 1")
    assert _ids(table) == HISTORY[4][1] - {1}
    assert table.check().ok


def test_its_leaves_can_be_rewritten(table: frazil.Table) -> None:
    table.rewrite_manifests()
    assert _ids(table) == LAST
    snapshot = table.current_snapshot()
    assert snapshot is not None
    reader = table._handle.reader()
    for location in [
        snapshot.root_manifest or "",
        *(leaf.location for leaf in reader.tree(snapshot).leaves()),
    ]:
        data = (_folder(table) / location).read_bytes()
        assert manifest.describe(data, path=location)["revision"] == "2026-10"
    assert table.check().ok


@pytest.mark.parametrize("version", [2, 3])
def test_it_can_be_published(table: frazil.Table, version: int) -> None:
    """Its equality deletes name no spec, though the table is partitioned: it gets one for them."""
    table.append(_row(100, "de"))
    published = table.publish(format_version=version)
    specs = {spec.spec_id: len(spec.fields) for spec in table.refresh().metadata.partition_specs}
    assert specs == {0: 1, 1: 0}
    assert table.metadata.default_spec_id == 0
    opened = frazil.connect(_folder(table).parent / "other").open_iceberg(
        published.metadata_location
    )
    assert _ids(opened) == LAST | {100}


def _folder(table: frazil.Table) -> Path:
    return Path(local_path(table.location))


def test_a_check_says_which_revisions_there_are(table: frazil.Table) -> None:
    table.delete("id = 3")
    report = table.check()
    assert report.revisions == {"1.12": 12 + 4, "2026-10": 1}
    assert "17 manifests (16 of revision 1.12, 1 of revision 2026-10)" in str(report)


def test_a_tree_says_which_revisions_it_holds(table: frazil.Table) -> None:
    table.delete("id = 3")
    reader = table._handle.reader()
    tree = reader.tree(table.current_snapshot())
    assert len(tree.leaves()) == 3
    assert reader.revisions(tree) == {"1.12": 3, "2026-10": 1}


CONSTRAINTS = [
    {
        "constraint-id": 1,
        "name": "orders_pk",
        "type": "primary-key",
        "field-ids": [1],
        "enforced": False,
    }
]


def test_constraints_are_kept_and_written_back(tmp_path: Path) -> None:
    """As the specification's draft has them; Frazil neither enforces nor validates them."""
    place = tmp_path / "orders"
    shutil.copytree(STORED, place)
    metadata = place / "metadata" / "v12.metadata.json"
    raw = json.loads(metadata.read_text().replace("file:///somewhere/orders", place.as_uri()))
    raw |= {"constraints": CONSTRAINTS, "last-constraint-id": 4}
    statuses = [{"constraint-id": 1, "status": "validated"}]
    raw["snapshots"][-1]["constraint-statuses"] = statuses
    metadata.write_text(json.dumps(raw))
    catalog = frazil.connect(tmp_path / "warehouse")
    catalog.create_namespace("shop")
    table = catalog.register_table("shop.orders", metadata.as_uri())
    table.append(_row(100, "de"))
    table.evolve_schema().add_column("note", "string").commit()
    table.evolve_partitions().remove("country").commit()

    again = frazil.connect(tmp_path / "warehouse").load_table("shop.orders")
    exported = json.loads(Path(local_path(again.export())).read_text())
    assert exported["constraints"] == CONSTRAINTS
    assert exported["last-constraint-id"] == 4
    snapshots = {each["sequence-number"]: each for each in exported["snapshots"]}
    assert snapshots[12]["constraint-statuses"] == statuses
    # Nobody validated the rows that came later.
    assert "constraint-statuses" not in snapshots[13]
    published = json.loads(Path(local_path(again.publish().metadata_location)).read_text())
    assert "constraints" not in published, "versions before 4 have none"


def test_rows_are_not_added_past_a_constraint_that_is_enforced(tmp_path: Path) -> None:
    place = tmp_path / "orders"
    shutil.copytree(STORED, place)
    metadata = place / "metadata" / "v12.metadata.json"
    raw = json.loads(metadata.read_text().replace("file:///somewhere/orders", place.as_uri()))
    raw |= {"constraints": [{**CONSTRAINTS[0], "enforced": True}], "last-constraint-id": 1}
    metadata.write_text(json.dumps(raw))
    catalog = frazil.connect(tmp_path / "warehouse")
    catalog.create_namespace("shop")
    table = catalog.register_table("shop.orders", metadata.as_uri())
    with pytest.raises(Unsupported, match="orders_pk") as error:
        table.append(_row(100, "de"))
    assert error.value.feature == "enforced constraints"
    table.delete("id = 3")
    assert _ids(table) == LAST - {3}
    table.rewrite_manifests()
    assert _ids(table) == LAST - {3}
