"""Places of a column are those of its paths one by one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from frazil.storage import Places

ODD = [
    "s3://bucket/a/b.parquet",
    "s3a://bucket//a/./b.parquet",
    "gs://bucket/x=1/y%20z",
    "file:///data/t/a.parquet",
    "file:/data/t/../u/a.parquet",
    "/data//t/a.parquet",
    "/a",
    "s3://bucket/key with spaces/ü.parquet",
]
NO_NAME = ["s3://bucket/a/", "/data/t/..", "/data/.", "relative", "s3://bucket", ""]


def _spelled(column: pa.Array) -> list[str]:
    folders, names = Places().files(column)
    assert not any("/" in name for name in names.to_pylist())
    return [f"{a}{b}" for a, b in zip(folders.to_pylist(), names.to_pylist(), strict=True)]


@pytest.mark.parametrize("paths", [ODD, [*ODD, *NO_NAME], []])
def test_a_column_is_spelled_as_its_paths(paths: list[str]) -> None:
    assert _spelled(pa.array(paths, pa.string())) == [Places().file(path) for path in paths]


def test_links_of_folders_are_followed_in_columns_too(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    column = pa.array([f"{tmp_path}/link/a", f"file://{tmp_path}/real/a"])
    one, other = _spelled(column)
    assert one == other == f"{tmp_path.resolve()}/real/a"


def test_a_link_above_a_folder_is_followed_whatever_was_asked_before(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "up").symlink_to("..")
    places, real = Places(), tmp_path.resolve()
    for asked in ("real", "link/inner", "link", "link/up/real", "link//inner", "link/./inner/.."):
        expected = (tmp_path / asked).resolve()
        assert places.folder(f"{tmp_path}/{asked}") == f"{expected}/", asked
    assert places.folder(f"{tmp_path}/gone/there") == f"{real}/gone/there/"
