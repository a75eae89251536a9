"""How often a small commit waits for the disk: each file and each folder once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import frazil

ROWS = pa.table({"id": [1]})
Synced = Callable[[Callable[[], object]], list[str]]


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> Synced:
    """The files and folders that some work syncs, the database's apart."""

    def of(work: Callable[[], object]) -> list[str]:
        names: list[str] = []
        fsync = os.fsync

        def counted(handle: int) -> None:
            names.append(os.readlink(f"/proc/self/fd/{handle}"))
            fsync(handle)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", counted)
            work()
        return names

    return of


@pytest.fixture
def table(tmp_path: Path) -> frazil.Table:
    table = frazil.connect(tmp_path / "warehouse").create_table("shop.orders", ROWS.schema)
    table.append(ROWS)
    return table


def test_an_append_syncs_two_files_and_their_folders_once(
    table: frazil.Table, synced: Synced
) -> None:
    data, data_folder, root, metadata_folder = synced(lambda: table.append(ROWS))
    location = table.location.removeprefix("file://")
    assert (data_folder, metadata_folder) == (f"{location}/data", f"{location}/metadata")
    assert Path(data).parent == Path(data_folder)
    assert Path(root).parent == Path(metadata_folder)


def test_a_change_of_metadata_syncs_no_file(table: frazil.Table, synced: Synced) -> None:
    assert synced(lambda: table.set_properties({"owner": "me"})) == []


def test_a_delete_of_a_whole_file_syncs_the_root_and_its_folder(
    table: frazil.Table, synced: Synced
) -> None:
    root, folder = synced(lambda: table.delete("id = 1"))
    assert Path(root).name.startswith("root-")
    assert Path(root).parent == Path(folder)
