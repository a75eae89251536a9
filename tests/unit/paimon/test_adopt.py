"""Adoption of a table laid out by hand, and what is left when it fails."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap

from frazil.catalog.backend import TableName
from frazil.commit.head import Draft, Lost, Outcome, State
from frazil.errors import CatalogError, CommitConflict, InvalidInput, NotFound, Unsupported
from frazil.format.metadata.metadata import History, TableMetadata
from frazil.paimon import adopt, dry_run
from frazil.paimon.adoption.apply import Run
from tests.interop.paimon.reading import fingerprint, handle_of, rows_of
from tests.support.memory_catalog import MemoryCatalog
from tests.unit.paimon.encode import avro_file, entry
from tests.unit.paimon.place import Place

SCHEMA = pa.schema(
    [
        pa.field("k", pa.int32(), metadata={"PARQUET:field_id": "0"}),
        pa.field("v", pa.string(), metadata={"PARQUET:field_id": "1"}),
    ]
)


def data_file(place: Place, name: str, rows: list[tuple[int, str]]) -> dict[str, Any]:
    """A data file in bucket 0, and its manifest entry."""
    path = place.root / "bucket-0" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = [[row[0] for row in rows], [row[1] for row in rows]]
    pq.write_table(pa.table(columns, schema=SCHEMA), path)
    return entry(name, file_size=path.stat().st_size, row_count=len(rows))


def vector_file(place: Place, positions: dict[str, list[int]]) -> str:
    """An index file with a 32-bit vector per data file, and its index manifest's name."""
    data, ranges = b"\x01", []
    for name, rows in positions.items():
        body = bytes.fromhex("5e43f2d0") + BitMap(rows).serialize()
        one = {"f0": name, "f1": len(data), "f2": len(body), "_CARDINALITY": len(rows)}
        ranges.append(one)
        data += struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    place.write("index/index-1", data)
    numbers: list[dict[str, Any]] = [{"name": f"f{i}", "type": "int"} for i in (1, 2)]
    item = {
        "type": "record",
        "name": "range",
        "fields": [
            {"name": "f0", "type": "string"},
            *numbers,
            {"name": "_CARDINALITY", "type": ["null", "long"]},
        ],
    }
    kinds = {
        "_VERSION": "int",
        "_KIND": "int",
        "_PARTITION": "bytes",
        "_BUCKET": "int",
        "_INDEX_TYPE": "string",
        "_FILE_NAME": "string",
        "_FILE_SIZE": "long",
        "_ROW_COUNT": "long",
        "_DELETIONS_VECTORS_RANGES": {"type": "array", "items": item},
    }
    fields = [{"name": name, "type": kind} for name, kind in kinds.items()]
    record = {
        "_VERSION": 1,
        "_KIND": 0,
        "_PARTITION": bytes(12),
        "_BUCKET": 0,
        "_INDEX_TYPE": "DELETION_VECTORS",
        "_FILE_NAME": "index-1",
        "_FILE_SIZE": len(data),
        "_ROW_COUNT": 1,
        "_DELETIONS_VECTORS_RANGES": ranges,
    }
    schema = {"type": "record", "name": "r", "fields": fields}
    place.write("manifest/index-manifest-1", avro_file(schema, [record]))
    return "index-manifest-1"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path / "paimon" / "t")
    made.schema(("k", "INT"), ("v", "STRING"))
    made.snapshot(1, [data_file(made, "a.parquet", [(1, "one"), (2, "two"), (3, "three")])])
    index = vector_file(made, {"a.parquet": [0, 2]})
    added = data_file(made, "b.parquet", [(4, "four")])
    made.snapshot(2, [entry_like(made, "a.parquet"), added], indexManifest=index)
    return made


def entry_like(place: Place, name: str) -> dict[str, Any]:
    path = place.root / "bucket-0" / name
    rows = pq.read_metadata(path).num_rows
    return entry(name, file_size=path.stat().st_size, row_count=rows)


@pytest.fixture
def catalog(tmp_path: Path) -> MemoryCatalog:
    made = MemoryCatalog(warehouse=f"file://{tmp_path}/warehouse")
    made.namespaces.create("db")
    return made


def lines(*rows: tuple[int, str]) -> list[str]:
    return [f'{{"k": {key}, "v": "{value}"}}' for key, value in rows]


def test_files_and_vectors_are_taken_over_where_they_are(
    place: Place, catalog: MemoryCatalog, tmp_path: Path
) -> None:
    before = fingerprint(place.root)
    adopted = adopt(catalog, "db.t", str(place.root))
    assert [s.added_files for s in adopted.snapshots] == [2]
    handle = handle_of(catalog, "db.t")
    assert rows_of(handle, handle.tip()) == lines((2, "two"), (4, "four"))
    assert fingerprint(place.root) == before
    made = [name.rsplit(".", 1)[-1] for name in fingerprint(tmp_path / "warehouse")]
    assert sorted(made) == ["json", "parquet", "puffin"]


@pytest.mark.parametrize("option", ["scan.fallback-branch", "scan.primary-branch"])
def test_a_table_that_reads_another_branch_too_is_refused(
    place: Place, catalog: MemoryCatalog, option: str
) -> None:
    place.schema(("k", "INT"), ("v", "STRING"), id=1, options={option: "history"})
    with pytest.raises(Unsupported, match=f"option {option} is 'history'"):
        adopt(catalog, "db.t", str(place.root))


def test_a_scheme_in_capitals_is_a_path(place: Place, catalog: MemoryCatalog) -> None:
    adopt(catalog, "db.t", f"FILE:{place.root}")
    handle = handle_of(catalog, "db.t")
    assert rows_of(handle, handle.tip()) == lines((2, "two"), (4, "four"))


def test_a_relative_path_is_that_of_the_working_directory(
    place: Place, catalog: MemoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place.root.parent)
    adopted = adopt(catalog, "db.t", "t")
    handle = handle_of(catalog, "db.t")
    assert rows_of(handle, handle.tip()) == lines((2, "two"), (4, "four"))
    assert handle.metadata.properties["paimon.location"] == str(place.root)
    text = str(adopted)
    assert text.startswith("db.t: adopted\nsnapshot 2 of main is ")
    assert "2 files added, 0 removed" in text
    assert str(adopt(catalog, "db.t", "t")) == "db.t: brought up to date\nnothing new in Paimon"


def test_history_grows_the_vector_of_a_file_that_stays(
    place: Place, catalog: MemoryCatalog
) -> None:
    adopted = adopt(catalog, "db.t", str(place.root), history=True)
    first, second = adopted.snapshots
    assert (first.added_files, second.added_files, second.changed_vectors) == (1, 1, 1)
    handle = handle_of(catalog, "db.t")
    then = handle.snapshot(first.snapshot_id)
    assert rows_of(handle, then) == lines((1, "one"), (2, "two"), (3, "three"))


class Refusing(MemoryCatalog):
    """A catalog that fails when a table is entered."""

    def create_table(
        self, identifier: TableName, metadata: TableMetadata, history: History | None = None
    ) -> Any:
        raise CatalogError("down")


def test_nothing_is_left_when_the_catalog_fails(place: Place, tmp_path: Path) -> None:
    catalog = Refusing(warehouse=f"file://{tmp_path}/warehouse")
    catalog.namespaces.create("db")
    with pytest.raises(CatalogError):
        adopt(catalog, "db.t", str(place.root), history=True)
    assert fingerprint(tmp_path / "warehouse") == {}


def test_a_sync_that_loses_a_race_leaves_nothing_and_says_so(
    place: Place, catalog: MemoryCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = (place.root / "snapshot" / "snapshot-2").read_bytes()
    (place.root / "snapshot" / "snapshot-2").unlink()
    adopt(catalog, "db.t", str(place.root))
    place.write("snapshot/snapshot-2", later)
    before = fingerprint(tmp_path / "warehouse")

    class Slow:
        def __init__(self, head: Any) -> None:
            self._head = head

        def __getattr__(self, name: str) -> Any:
            return getattr(self._head, name)

        def swap(self, base: State, draft: Draft) -> Outcome:
            return Lost()

    head = Slow(catalog.load("db.t"))
    monkeypatch.setattr(catalog, "load", lambda name: head)
    with pytest.raises(CommitConflict, match="run it again"):
        adopt(catalog, "db.t", str(place.root))
    assert fingerprint(tmp_path / "warehouse") == before


def test_a_vector_that_shrank_gives_rows_back(place: Place, catalog: MemoryCatalog) -> None:
    adopt(catalog, "db.t", str(place.root))
    smaller = vector_file(place, {"a.parquet": [2]})
    place.write("manifest/index-manifest-3", (place.root / "manifest" / smaller).read_bytes())
    both = [entry_like(place, "a.parquet"), entry_like(place, "b.parquet")]
    place.snapshot(3, both, indexManifest="index-manifest-3")
    adopt(catalog, "db.t", str(place.root))
    handle = handle_of(catalog, "db.t")
    assert rows_of(handle, handle.tip()) == lines((1, "one"), (2, "two"), (4, "four"))


def test_columns_that_do_not_exist_cannot_be_left_out(place: Place, catalog: MemoryCatalog) -> None:
    with pytest.raises(InvalidInput, match="unknown column"):
        adopt(catalog, "db.t", str(place.root), exclude=["w"])
    with pytest.raises(InvalidInput, match="unknown column"):
        dry_run(str(place.root), exclude=["w"])


def test_a_table_without_snapshots_has_nothing_to_take(
    tmp_path: Path, catalog: MemoryCatalog
) -> None:
    empty = Place(tmp_path / "empty")
    empty.schema(("k", "INT"))
    with pytest.raises(NotFound, match="no snapshot yet"):
        adopt(catalog, "db.t", str(empty.root))


def test_how_far_a_table_was_taken_over_can_be_told_from_it(
    place: Place, catalog: MemoryCatalog
) -> None:
    adopt(catalog, "db.t", str(place.root))
    handle = handle_of(catalog, "db.t")
    run = Run(head=handle.head, context=handle.context, state=handle.state)
    assert run.reached() == {"main": 2}
