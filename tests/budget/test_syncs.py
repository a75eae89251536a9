"""How often a small commit waits for the disk: each file and each folder once."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

import frazil

ROWS = pa.table({"id": [1]})


def test_an_append_syncs_two_files_and_their_folders_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = frazil.connect(tmp_path / "warehouse").create_table("shop.orders", ROWS.schema)
    table.append(ROWS)
    synced: list[str] = []
    fsync = os.fsync

    def counted(handle: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{handle}"))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", counted)
    table.append(ROWS)
    data, data_folder, root, metadata_folder = synced
    location = table.location.removeprefix("file://")
    assert (data_folder, metadata_folder) == (f"{location}/data", f"{location}/metadata")
    assert Path(data).parent == Path(data_folder)
    assert Path(root).parent == Path(metadata_folder)
