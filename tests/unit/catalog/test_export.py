"""When metadata JSON is due, where it goes, and how a moved table is told."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from frazil.catalog import export
from frazil.catalog.storages import Storages
from frazil.commit.head import State
from frazil.credentials import masked
from frazil.errors import FormatError, InvalidInput
from frazil.format.metadata.metadata import History
from frazil.iceberg.schema import Schema
from frazil.storage import LocalStorage
from tests.support.catalogs import ORDERS, append, long_history, orders, snapshot_after


@pytest.mark.parametrize(
    ("every", "version", "rendered", "snapshots", "expected"),
    [
        (None, 99, 0, 99, False),
        (None, 100, 0, 100, True),
        (None, 150, 100, 150, False),
        (None, 5, None, 5, True),
        (None, 900, 800, 200, True),  # the others have expired
        (None, 900, 800, 201, False),
        (None, 999, 800, 4, False),  # asked once in a hundred versions
        (None, 1000, 800, 400, True),
        ("1", 1, 0, 1, True),
        ("0", 1000, None, 1000, False),
        ("10", 12, 3, 12, False),
        ("10", 13, 3, 13, True),
        ("10", 1010, 1000, 9999, True),
    ],
)
def test_json_is_due_after_so_many_versions(
    every: str | None, version: int, rendered: int | None, snapshots: int, expected: bool
) -> None:
    properties = {} if every is None else {"write.metadata.json-every": every}
    before = orders("/t", properties)
    after = append(State(version=version - 1, metadata=before), 1).metadata
    due = export.is_due(
        before,
        after,
        version=version,
        rendered_version=rendered,
        snapshot_count=lambda: snapshots,
    )
    assert due is expected


def test_json_files_of_a_long_history_stay_in_proportion_to_it() -> None:
    table = orders("/t")
    rendered, sizes = 0, []
    for version in range(1, 20_001):
        if export.is_due(
            table,
            table,
            version=version,
            rendered_version=rendered,
            snapshot_count=partial(int, version),
        ):
            rendered = version
            sizes.append(version)  # a file has every snapshot
    assert sum(sizes) < 2 * rendered
    assert rendered > 20_000 // 2


def test_json_is_due_when_the_shape_of_the_table_changes() -> None:
    one_later: Any = {"version": 1, "rendered_version": 0, "snapshot_count": lambda: 1}
    before = orders("/t")
    renamed = Schema(*ORDERS.fields)
    assert not export.is_due(
        before,
        before.with_properties({"owner": "x"}, now_ms=2),
        **one_later,
    )
    assert not export.is_due(before, before.with_schema(renamed, now_ms=2), **one_later)
    unpartitioned = before.with_spec(before.spec().__class__(), now_ms=2)
    assert export.is_due(before, unpartitioned, **one_later)


@pytest.mark.parametrize("text", ["-1", "often", "", "1.5", "²"])
def test_a_number_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="json-every"):
        export.json_every(orders("/t", {"write.metadata.json-every": text}))


def test_json_goes_to_the_metadata_folder_unless_told() -> None:
    assert export.metadata_folder(orders("/w/t")) == "/w/t/metadata"
    for given, expected in (
        ("json", "/w/t/json"),
        ("/else/where/", "/else/where"),
        ("file:/else/where", "file:/else/where"),
    ):
        metadata = orders("/w/t", {"write.metadata.path": given})
        assert export.metadata_folder(metadata) == expected
    stored = replace(orders("/w/t"), properties={"write.metadata.path": "../elsewhere"})
    with pytest.raises(FormatError):
        export.metadata_folder(stored)


def test_what_was_rendered_is_read_back(tmp_path: Path) -> None:
    storage = LocalStorage()
    metadata = orders(str(tmp_path / "t"))
    snapshot = snapshot_after(metadata, 5)
    after = metadata.with_snapshot(snapshot)
    history = History().advanced(metadata, after, added=(snapshot,))
    path = export.render(after, history, version=7, storage=storage)
    assert Path(path).name.startswith("00007-")
    assert export.read(path, storage=storage) == (after, history)


def test_long_json_is_compressed_under_icebergs_name_for_it(tmp_path: Path) -> None:
    storage = LocalStorage()
    metadata, history = long_history(orders(str(tmp_path / "t")), 200)
    path = export.render(metadata, history, version=200, storage=storage)
    assert path.endswith(".gz.metadata.json")
    assert gzip.decompress(Path(path).read_bytes()).startswith(b'{"format-version":4')
    assert export.read(path, storage=storage) == (metadata, history)


@pytest.mark.parametrize("codec", ["none", "uncompressed"])
def test_long_json_stays_plain_where_metadata_is_not_compressed(tmp_path: Path, codec: str) -> None:
    properties = {"write.metadata.compression-codec": codec}
    metadata, history = long_history(orders(str(tmp_path / "t"), properties), 200)
    path = export.render(metadata, history, version=200, storage=LocalStorage())
    assert ".gz." not in path
    assert json.loads(Path(path).read_bytes())["table-uuid"] == str(metadata.table_uuid)


def test_a_moved_table_is_where_its_json_is(tmp_path: Path) -> None:
    storage = LocalStorage()
    metadata = orders(str(tmp_path / "old"))
    path = export.render(metadata, History(), version=0, storage=storage)
    (tmp_path / "old").rename(tmp_path / "new")
    moved = path.replace("/old/", "/new/")
    assert export.read_moved(moved, storage=storage)[0].location == str(tmp_path / "new")
    told, _ = export.read_moved(moved, storage=storage, location="/told")
    assert told.location == "/told"


def test_json_kept_apart_on_purpose_does_not_move_the_table(tmp_path: Path) -> None:
    storage = LocalStorage()
    apart = {"write.metadata.path": str(tmp_path / "json/metadata")}
    path = export.render(orders("/w/t", apart), History(), version=0, storage=storage)
    assert export.read_moved(path, storage=storage)[0].location == "/w/t"


def test_an_older_table_does_not_move(tmp_path: Path) -> None:
    storage = LocalStorage()
    metadata = replace(orders(str(tmp_path / "old")), format_version=2, expressions=())
    path = export.render(metadata, History(), version=0, storage=storage)
    (tmp_path / "old").rename(tmp_path / "new")
    moved = path.replace("/old/", "/new/")
    assert export.read_moved(moved, storage=storage)[0].location == str(tmp_path / "old")


def test_credentials_are_masked() -> None:
    properties = {"s3.secret-access-key": "hunter2", "s3.endpoint": "http://x"}
    assert masked(properties) == {"s3.secret-access-key": "***", "s3.endpoint": "http://x"}
    assert "hunter2" not in repr(Storages(properties))


def test_one_storage_serves_one_place() -> None:
    storages = Storages()
    assert storages("/a/b") is storages("/c")
