"""What counting rows may cost: nothing per file where metadata tells."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.scan import tasks
from frazil.scan.plan import Plan


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files became tasks, each time tasks were made."""
    counts: list[int] = []
    tasks_of = tasks.tasks_of

    def counting(plan: Plan, *, location: str) -> object:
        counts.append(plan.files.num_rows)
        return tasks_of(plan, location=location)

    monkeypatch.setattr(tasks, "tasks_of", counting)
    return counts


def test_files_that_metadata_counts_become_no_objects(tmp_path: Path, opened: list[int]) -> None:
    schema = pa.schema([("id", pa.int64()), ("day", pa.string())])
    with frazil.connect(tmp_path) as catalog:
        table = catalog.create_table("s.t", schema, partition_by=["day"])
        for day in range(5):
            table.append([{"id": 10 * day + row, "day": f"d{day}"} for row in range(10)])
        table.delete("id IN (3, 17, 18)")
        assert table.scan().count() == 47
        assert table.scan("day = 'd1'").count() == 8
        assert table.scan("day >= 'd3'").limit(7).count() == 7
        assert opened == []
        # The first file has other ids, too; ids 10 to 29 fill the next two.
        assert table.scan("id BETWEEN 5 AND 29").count() == 5 + 8 + 10
        assert opened == [1]
