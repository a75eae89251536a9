"""Which files are worth rewriting."""

from __future__ import annotations

import pyarrow as pa

from frazil.format.entries.batch import EntryBatch
from frazil.rows.selection import Selection
from frazil.scan.plan import Plan
from frazil.scan.report import ScanReport


def planned(sizes: list[int], *, deleted: dict[int, int], specs: list[int]) -> Plan:
    rows = [
        {
            "location": f"data/{at}",
            "file_size_in_bytes": size,
            "record_count": 100,
            "spec_id": specs[at],
            "deletion_vector.cardinality": deleted.get(at),
            "partition.1000": at % 2,
        }
        for at, size in enumerate(sizes)
    ]
    batch = EntryBatch.from_rows(rows, {"deletion_vector.cardinality": pa.int64()})
    report = ScanReport(snapshot_id=None, filter="")
    return Plan(snapshot=None, files=batch, deletes=None, report=report)


def chosen(selection: Selection, plan: Plan) -> list[list[int]]:
    return sorted(group.rows.tolist() for group in selection.groups(plan, current={1}))


def test_files_are_chosen_by_size_deletes_and_partitioning() -> None:
    sizes = [10, 100, 10, 100, 10, 500, 100, 10]
    ones = [1] * 8
    base = Selection(target_file_bytes=100, min_input_files=3)
    # 0, 2 and 4 are small, of one partition; 5 is too large; 7 is small and alone with it.
    assert chosen(base, planned(sizes, deleted={}, specs=ones)) == [[0, 2, 4], [5, 7]]
    # 3 has lost a third of its rows, 6 was written under another spec.
    specs = [1, 1, 1, 1, 1, 1, 0, 1]
    found = chosen(base, planned(sizes, deleted={3: 33}, specs=specs))
    assert found == [[0, 2, 4], [3, 5, 7], [6]]
    few = Selection(target_file_bytes=100, min_input_files=4, max_file_bytes=1000)
    assert chosen(few, planned(sizes, deleted={}, specs=ones)) == []
    every = Selection(target_file_bytes=100, rewrite_all=True, max_group_bytes=200)
    found = chosen(every, planned(sizes, deleted={}, specs=ones))
    assert found == [[0, 2, 4, 6], [1, 3], [5], [7]]
