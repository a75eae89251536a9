"""Jobs that run in the background, and row groups that are written there."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.data.write.parquet_file import Background, ParquetFile


def test_a_job_runs_while_its_caller_continues_and_the_next_one_waits() -> None:
    background, go, done = Background(), threading.Event(), []

    def first() -> None:
        assert go.wait(10)
        done.append(1)

    background.run(first)
    assert not done
    go.set()
    background.run(lambda: done.append(2))
    background.close()
    assert done == [1, 2]
    background.close()  # nothing is running


def test_a_failure_is_raised_once_by_whatever_waits() -> None:
    background = Background()
    for waits in (background.wait, lambda: background.run(lambda: None), background.close):
        background.run(lambda: [][0])
        with pytest.raises(IndexError):
            waits()
        background.wait()
    background.close()


@pytest.mark.parametrize("sorted_by", [None, "id"])
@pytest.mark.parametrize("broken", [0, 1, 3])
def test_a_row_group_that_cannot_be_written_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: int, sorted_by: str | None
) -> None:
    """It may be written in the background or at the end."""
    rows = pa.table({"id": range(400), "part": [at % 2 for at in range(400)]})
    calls: list[int] = []
    real = ParquetFile.write_row_group

    def write(self: ParquetFile, group: pa.Table) -> None:
        calls.append(group.num_rows)
        if len(calls) > broken:
            raise OSError("the disk is full")
        real(self, group)

    with frazil.connect(tmp_path / "warehouse") as catalog:
        table = catalog.create_table(
            "s.t",
            rows.schema,
            partition_by=["part"],
            sort_by=None if sorted_by is None else [sorted_by],
            properties={"write.parquet.row-group-limit": "50"},
        )
        table.append(rows)
        files = set(tmp_path.rglob("*.parquet"))
        monkeypatch.setattr(ParquetFile, "write_row_group", write)
        with pytest.raises(OSError, match="disk is full"):
            table.append(rows.to_reader(max_chunksize=40))
        assert set(tmp_path.rglob("*.parquet")) == files
        assert table.scan().count() == 400


def test_rows_of_many_row_groups_are_all_there_in_their_order(tmp_path: Path) -> None:
    rows = pa.table({"id": range(1000), "part": [at // 10 % 3 for at in range(1000)]})
    with frazil.connect(tmp_path / "warehouse") as catalog:
        limit = {"write.parquet.row-group-limit": "30"}
        table = catalog.create_table("s.t", rows.schema, partition_by=["part"], properties=limit)
        table.append(rows.to_reader(max_chunksize=7))
        for part in range(3):
            found = table.scan(f"part = {part}").to_arrow()["id"].to_pylist()
            assert found == [at for at in range(1000) if at // 10 % 3 == part]
