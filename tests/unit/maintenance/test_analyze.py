"""The health report: numbers, and what to run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from frazil.tree.clusters import shared_ranges
from tests.support.history import SMALL, new_table, rows


def test_numbers_of_a_small_table(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(*range(10)))
    table.append(rows(10))
    table.delete("id < 2")
    found = table.analyze()
    assert (found.data_files, found.records, found.deleted_rows) == (2, 11, 2)
    assert (found.files_with_vectors, found.files_mostly_deleted) == (1, 0)
    assert (found.snapshots, found.expirable_snapshots, found.refs) == (3, 0, 1)
    assert (found.root_entries, found.leaves, found.dead_entries) == (2, 0, 0)
    assert found.small_files == 2
    assert found.average_file_bytes == found.data_bytes // 2
    assert found.delete_ratio == pytest.approx(2 / 11)
    assert found.root_bytes > 0
    assert found.is_healthy
    assert "nothing to do" in str(found)


def test_an_empty_table_is_healthy(tmp_path: Path) -> None:
    found = new_table(tmp_path).analyze()
    assert found.is_healthy
    assert (found.snapshot_id, found.data_files, found.delete_ratio) == (None, 0, 0.0)


def test_advice_names_what_to_run(tmp_path: Path) -> None:
    table = new_table(
        tmp_path,
        properties={
            **SMALL,
            "write.leaf.max-dead-ratio": "1",
            "history.expire.max-snapshot-age-ms": "0",
        },
    )
    for number in range(24):
        table.append(rows(number, number))
    table.rewrite_manifests()
    table.delete("id < 9")
    found = table.analyze()
    assert (found.dead_entries, found.leaves, found.expirable_snapshots) == (9, 4, 25)
    assert [advice.run for advice in found.advice] == ["compact_metadata", "expire_snapshots"]
    assert "9 of 24 leaf entries are dead" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["advice"][0]["run"] == "compact_metadata"
    table.compact_metadata()
    table.expire_snapshots()
    assert table.analyze().is_healthy


def test_rows_deleted_from_files_call_for_new_files(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1, 2))
    table.append(rows(3, 4))
    table.delete("id = 1")
    table.set_properties({"write.equality-deletes.enabled": "true"})
    table.row_delta().add_equality_deletes(pa.table({"id": [3]}), on=["id"]).commit()
    found = table.analyze()
    assert (found.files_mostly_deleted, found.equality_delete_files) == (1, 1)
    assert [advice.run for advice in found.advice] == ["compact"] * 2


def test_compaction_is_advised_for_the_files_that_it_would_rewrite(tmp_path: Path) -> None:
    """Twelve partitions of two small files each are left alone; one of 24 is not."""
    table = new_table(tmp_path)
    table.evolve_partitions().add("id").commit()
    for _ in range(2):
        table.append(rows(*range(12)))
    few = table.analyze()
    assert (few.small_files, few.files_to_compact) == (24, 0)
    assert not table.compact().committed
    assert "compact" not in [advice.run for advice in few.advice]
    for _ in range(22):
        table.append(rows(0))
    many = table.analyze()
    assert (many.small_files, many.files_to_compact) == (46, 24)
    assert "compact" in [advice.run for advice in many.advice]
    assert table.compact().files_removed == 24


def _overlaps(*ranges: tuple[int, int]) -> list[int]:
    lower = np.array([low for low, _ in ranges])
    upper = np.array([high for _, high in ranges])
    return [int(count) for count in shared_ranges(lower, upper)]


def test_overlap_counts_ranges_that_share_more_than_an_end() -> None:
    assert _overlaps((0, 5), (5, 9), (9, 12)) == [0, 0, 0]
    assert _overlaps((0, 10), (1, 2), (3, 4)) == [2, 1, 1]
    assert _overlaps((0, 10), (0, 10), (0, 10)) == [2, 2, 2]
    assert _overlaps((3, 3), (3, 3), (0, 10)) == [1, 1, 2]
    assert _overlaps((3, 3), (0, 3), (3, 8)) == [0, 0, 0]


def test_small_files_that_can_wait_are_not_called_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for number in range(6):
        table.append(rows(number))
    assert table.analyze().is_healthy
    assert "6 to compact" in str(table.analyze())
    assert "nothing urgent" in str(table.analyze())
    table.compact()
    assert "nothing to do" in str(table.analyze())


def test_the_report_fits_a_terminal_and_says_only_what_there_is(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for number in range(30):
        table.append(rows(number))
    lines = str(table.analyze()).splitlines()
    assert max(map(len, lines)) <= 80
    assert "  deletes     none" in lines
    assert "  leaves      none" in lines
    first = table.scan(columns=["_file"]).to_arrow()["_file"][0].as_py()
    table.delete(f"_file = '{first}' AND _pos < 2")
    text = str(table.analyze())
    assert "deleted row" in text
    assert "0 equality" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_card_says_what_to_run(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(0))
    assert "nothing" in table.analyze()._repr_html_()
    for number in range(1, 30):
        table.append(rows(number))
    health = table.analyze()
    assert health.advice
    assert health.advice[0].run in health._repr_html_()
