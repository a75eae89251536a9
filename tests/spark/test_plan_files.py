"""The files of a plan as Java maps them: in pieces, since it maps and numbers 2 GB at most."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import frazil
from frazil.spark.bridge import file_columns
from frazil.spark.bridge.file_columns import Place

pytestmark = pytest.mark.spark

IDS = "SELECT id FROM frazil.shop.orders ORDER BY id"


@pytest.mark.parametrize("piece", [8, 24])
def test_names_and_bitmaps_may_lie_across_pieces(
    spark: Any, table: frazil.Table, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    table.delete("id < 40")
    monkeypatch.setattr(file_columns, "PIECE_BYTES", piece)
    found = spark.sql("SELECT id, _file, _pos FROM frazil.shop.orders")
    assert sorted(row["id"] for row in found.collect()) == list(range(40, 90))
    named = {row["_file"].rsplit("/", 1)[1] for row in found.collect()}
    assert named == {Path(file).name for file in table.scan().plan().files.pylist("location")}


def test_names_may_take_more_than_java_maps_at_once(
    spark: Any, table: frazil.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three gigabytes of names, nearly all of them a hole in the file."""
    write, hole = file_columns.write, 3 << 30

    def sparse(path: Path, columns: Mapping[str, Any]) -> dict[str, list[Place]]:
        places = write(path, columns)
        (offsets_at, size), (data_at, length) = places["name"]
        with path.open("r+b") as file:
            file.seek(offsets_at)
            offsets = np.frombuffer(file.read(size), np.int64) + hole
            file.seek(data_at)
            data = file.read(length)
            file.seek(offsets_at)
            file.write(offsets.tobytes())
            start = file.seek(0, 2)
            file.seek(start + hole)
            file.write(data)
        places["name"] = [(offsets_at, size), (start, hole + length)]
        return places

    monkeypatch.setattr(file_columns, "write", sparse)
    assert [row["id"] for row in spark.sql(IDS).collect()] == list(range(90))
