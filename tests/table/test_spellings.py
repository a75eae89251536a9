"""A table's folders may be spelled in several ways: no spelling loses a file."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import frazil

LOCATIONS = ("{}/t", "file:{}/t", "file://{}/t", "FILE:{}/t")
FOLDERS = ("{}/t/{}", "file:{}/t/{}", "file://{}/t/{}", "file:{}/apart/{}", "{}/apart/{}")


def _folder(spelling: str, base: Path, name: str) -> str:
    return spelling.format(base, name)


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("location", LOCATIONS)
def test_no_spelling_of_a_folder_loses_a_file(tmp_path: Path, location: str, folder: str) -> None:
    catalog = frazil.connect(tmp_path / "warehouse", create=True)
    table = catalog.create_table(
        "shop.orders",
        pa.schema([("id", pa.int64())]),
        location=location.format(tmp_path),
        properties={
            "write.data.path": _folder(folder, tmp_path, "rows"),
            "write.metadata.path": _folder(folder, tmp_path, "tree"),
        },
    )
    table.append([{"id": 1}, {"id": 2}])
    table.append([{"id": 3}])
    table.delete("id = 1")
    with table.transaction() as tx:
        tx.append([{"id": 4}])
        tx.append([{"id": 5}])
        tx.delete("id = 4")
    catalog.sql("BEGIN; INSERT INTO shop.orders VALUES (6), (7); COMMIT")
    table.refresh()
    table.compact_metadata()
    table.upsert([{"id": 7}, {"id": 8}], on="id")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [2, 3, 5, 6, 7, 8]
    table.compact()
    table.expire_snapshots(older_than=timedelta(0))
    table.remove_orphan_files(older_than=timedelta(0))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [2, 3, 5, 6, 7, 8]
    assert table.check(deep=True).problems == ()
