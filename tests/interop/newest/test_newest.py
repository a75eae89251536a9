"""Manifests of revision 2026-10 as Iceberg's main branch reads them, entry by entry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import frazil
from frazil.format.entries import manifest
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import REVISION_1_12, REVISION_2026_10
from frazil.format.entries.nest import ColumnNames
from frazil.format.vectors import bitmap
from frazil.storage import local_path
from tests.interop.java import scenarios
from tests.interop.java.scenarios import FIRST_ROW_ID, SEQUENCE_NUMBER, SNAPSHOT_ID, Entry
from tests.interop.newest import reader
from tests.interop.newest.reader import ManifestFile, Refused

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
TOLD = ManifestFile(
    snapshot_id=SNAPSHOT_ID, sequence_number=SEQUENCE_NUMBER, first_row_id=FIRST_ROW_ID
)


def test_fields_are_declared_as_on_the_main_branch() -> None:
    ours = {
        (field.id, field.name, _type(field.type), field.required): [
            (child.id, child.name, str(child.type), child.required) for child in field.children
        ]
        for field in REVISION_2026_10.entry
        if field.name not in ("partition", "content_stats")
    }
    theirs: dict[Any, Any] = {
        (id, name, _type(kind), required): []
        for id, (name, kind, required) in reader.TRACKED_FILE.items()
    } | {
        (id, name, "None", required): [(member, *about) for member, about in declared.items()]
        for id, (name, declared, required) in reader.STRUCTS.items()
    }
    assert ours == theirs


def _type(kind: object) -> str:
    """A type as text, without what a member allows: that is compared for fields alone."""
    return str(kind).replace("item: ", "element: ").replace(" not null", "")


def _encoded(entries: list[Entry], content: manifest.Content) -> pa.Buffer:
    types = scenarios.column_types()
    batch = EntryBatch.from_rows(entries, types)
    if batch.has("spec_id"):
        # The writer of a tree adds what a spec's files all have as null.
        for key, kind in types.items():
            if key.startswith("partition.") and not batch.has(key):
                batch = batch.with_column(key, pa.nulls(batch.num_rows, kind))
    return manifest.encode(batch, content=content, names=NAMES, codec="zstd")


NAMES = ColumnNames(partition={}, uuids=frozenset({"partition.1013"}))


def _expected(entries: list[Entry], dead: set[int]) -> list[dict[str, Any]]:
    """From the format's rules alone: live entries with rows, tracking handed down."""
    next_row_id = FIRST_ROW_ID
    kept = []
    for position, entry in enumerate(entries):
        status = entry["tracking.status"]
        live = status in (0, 1, 4)
        row_id = entry.get("tracking.first_row_id")
        if live and row_id is None:
            row_id = next_row_id
            next_row_id += entry["record_count"]
        if not live or position in dead or not entry["record_count"]:
            continue
        inherits = SEQUENCE_NUMBER if status == 1 else None
        kept.append(
            {
                "location": entry["location"],
                "record_count": entry["record_count"],
                "status": status,
                "snapshot_id": entry.get("tracking.snapshot_id", SNAPSHOT_ID),
                "sequence_number": entry.get("tracking.sequence_number", inherits),
                "file_sequence_number": entry.get("tracking.file_sequence_number", inherits),
                "modified_snapshot_id": entry.get("tracking.modified_snapshot_id"),
                "first_row_id": row_id,
                "cardinality": entry.get("deletion_vector.cardinality"),
                "info": {
                    key.split(".")[1]: value
                    for key, value in entry.items()
                    if key.startswith("manifest_info.")
                },
            }
        )
    return kept


def _seen(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    shown = []
    for entry in found:
        info = entry["manifest_info"] or {}
        names = ("status", "snapshot_id", "sequence_number", "file_sequence_number")
        shown.append(
            {
                "location": entry["location"],
                "record_count": entry["record_count"],
                **{name: entry["tracking"][name] for name in names},
                "modified_snapshot_id": entry["tracking"]["modified_snapshot_id"],
                "first_row_id": entry["tracking"]["first_row_id"],
                "cardinality": (entry["deletion_vector"] or {}).get("cardinality"),
                "info": {key: value for key, value in info.items() if value is not None},
            }
        )
    return shown


@given(entries=scenarios.roots())
@QUICK
def test_a_root_reads_back_as_written(entries: list[Entry]) -> None:
    found = reader.read(_encoded(entries, "root"), TOLD)
    assert _seen(found) == _expected(entries, set())


@given(entries=scenarios.leaves(), dead=st.sets(st.integers(0, 4)))
@QUICK
def test_a_leaf_inherits_and_loses_what_its_vector_retires(
    entries: list[Entry], dead: set[int]
) -> None:
    told = ManifestFile(
        snapshot_id=SNAPSHOT_ID,
        sequence_number=SEQUENCE_NUMBER,
        first_row_id=FIRST_ROW_ID,
        dead=dead,
    )
    assert _seen(reader.read(_encoded(entries, "data"), told)) == _expected(entries, dead)


@given(entries=scenarios.leaves())
@QUICK
def test_files_have_a_partition_where_they_have_a_spec(entries: list[Entry]) -> None:
    for entry in reader.read(_encoded(entries, "data"), TOLD):
        assert (reader.partition(entry) is None) == (entry["spec_id"] is None)


def test_a_manifest_of_revision_1_12_is_not_one_of_the_main_branch() -> None:
    entry = {
        "tracking.status": 1,
        "content_type": 3,
        "location": "metadata/leaf.parquet",
        "file_format": "parquet",
        "record_count": 1,
        "file_size_in_bytes": 1,
        **{
            f"manifest_info.{kind}_{what}_count": 0
            for kind in ("added", "existing", "deleted", "replaced")
            for what in ("files", "rows")
        },
        "manifest_info.min_sequence_number": 0,
        "manifest_info.format_version": 4,
    }
    data = manifest.encode(
        EntryBatch.from_rows([entry]),
        content="root",
        names=NAMES,
        codec="zstd",
        revision=REVISION_1_12,
    )
    with pytest.raises(Refused, match="replaced_files_count"):
        reader.read(data, TOLD)


SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("country", pa.string()),
        pa.field("amount", pa.float64()),
    ]
)


def _rows(ids: list[int], country: str | None) -> pa.Table:
    columns = {"id": ids, "country": [country] * len(ids), "amount": [1.5] * len(ids)}
    return pa.table(columns, schema=SCHEMA)


@pytest.mark.parametrize("partition_by", [[], ["country"]])
def test_a_table_reads_as_frazil_reads_it(tmp_path: Path, partition_by: list[str]) -> None:
    catalog = frazil.connect(tmp_path)
    catalog.create_namespace("shop")
    table = catalog.create_table(
        "shop.orders",
        SCHEMA,
        partition_by=partition_by,
        properties={"write.root.max-data-entries": "2", "write.equality-deletes.enabled": "true"},
    )
    for number, country in enumerate([None, None, "de", "fr", "de"]):
        table.append(_rows([number * 10, number * 10 + 1], country))
        _check(table)
    table.delete("id = 10")
    _check(table)
    table.delete("country = 'fr'")
    _check(table)
    keys = pa.table({"id": [0]}, schema=pa.schema([SCHEMA.field("id")]))
    table.row_delta().add_equality_deletes(keys, ["id"]).commit()
    _check(table)
    table.update({"amount": frazil.expr("amount + 1")}, "id = 41")
    _check(table)
    table.rewrite_manifests()
    _check(table)


def _check(table: frazil.Table) -> None:
    """Every live data file, found through roots and leaves by a reader that knows no Frazil."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    found: dict[str, tuple[Any, ...]] = {}

    def take(entry: dict[str, Any]) -> None:
        tracking, vector = entry["tracking"], entry["deletion_vector"]
        found[entry["location"]] = (
            tracking["snapshot_id"],
            tracking["sequence_number"],
            tracking["first_row_id"],
            entry["record_count"],
            None if vector is None else vector["cardinality"],
        )

    def data(location: str) -> bytes:
        return Path(local_path(f"{table.location}/{location}")).read_bytes()

    told = ManifestFile(
        snapshot_id=int(snapshot.snapshot_id),
        sequence_number=snapshot.sequence_number,
        first_row_id=snapshot.first_row_id,
    )
    _check_explicit(data(snapshot.root_manifest or ""), partitioned=bool(table.spec.fields))
    for entry in reader.read(data(snapshot.root_manifest or ""), told):
        tracking, info = entry["tracking"], entry["manifest_info"]
        assert None not in (tracking["sequence_number"], tracking["file_sequence_number"])
        if entry["content_type"] == 0:
            take(entry)
        elif entry["content_type"] == 3:
            assert (entry["spec_id"], entry["partition"]) == (None, None)
            assert info["format_version"] == 4
            leaf = ManifestFile(
                snapshot_id=tracking["snapshot_id"],
                sequence_number=tracking["sequence_number"],
                first_row_id=tracking["first_row_id"],
                dead=set(bitmap.decode(info["dv"]).tolist()) if info["dv"] else (),
            )
            for file in reader.read(data(entry["location"]), leaf):
                take(file)
        elif entry["content_type"] == 4:
            deletes = ManifestFile(
                snapshot_id=1, sequence_number=1, first_row_id=None, content="deletes"
            )
            with pytest.raises(Refused, match="only data manifests"):
                reader.read(data(entry["location"]), deletes)
    trees = table._handle.reader()
    files = EntryBatch.concat(trees.all_live(trees.tree(snapshot)))
    files = files.filter(files.numpy("content_type") == 0)
    keys = (
        "tracking.snapshot_id",
        "tracking.sequence_number",
        "tracking.first_row_id",
        "record_count",
        "deletion_vector.cardinality",
    )
    ours = zip(*(files.pylist(key) for key in keys), strict=True)
    assert found == dict(zip(files.pylist("location"), ours, strict=True))


def _check_explicit(root: bytes, *, partitioned: bool) -> None:
    """Nothing in a root is left to be inherited; what has no partition names no spec."""
    for entry in pq.read_table(pa.BufferReader(root)).to_pylist():
        tracking, kind = entry["tracking"], entry["content_type"]
        for name in ("snapshot_id", "sequence_number", "file_sequence_number"):
            assert tracking[name] is not None, (name, entry["location"])
        if kind in (0, 3):
            assert tracking["first_row_id"] is not None, entry["location"]
        if kind >= 3 or not partitioned:
            assert (entry.get("spec_id"), entry.get("partition")) == (None, None)
        elif kind == 0:
            assert entry["spec_id"] == 0
            assert entry["partition"].keys() == {"country"}
