"""Snapshot summaries: Iceberg's keys, counted by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from frazil.commit.change import Change
from frazil.commit.summary import Tally, changed_partitions, summarise
from frazil.format.entries.batch import EntryBatch
from frazil.format.metadata.metadata import Snapshot, SnapshotId
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.transforms import IdentityTransform
from tests.support.trees import Bench, located


def _told(bench: Bench) -> dict[str, str]:
    """The summary but for what depends on the size of metadata files."""
    told = dict(bench.tip.summary)
    assert int(told.pop("frazil.metadata-bytes-written")) > 0
    return told


def test_a_series_of_commits_counts_what_came_and_went(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.append("D1", "D2")
    zero = {"total-delete-files": "0", "total-position-deletes": "0", "total-equality-deletes": "0"}
    assert _told(bench) == {
        "operation": "append",
        "added-data-files": "2",
        "added-records": "20",
        "added-files-size": "2000",
        "changed-partition-count": "1",
        "total-data-files": "2",
        "total-records": "20",
        "total-files-size": "2000",
        **zero,
        "frazil.root-entries": "2",
        "frazil.leaves-written": "0",
    }
    bench.delete_rows("D1", 3, 4)
    assert _told(bench) == {
        "operation": "delete",
        "added-dvs": "1",
        "added-delete-files": "1",
        "added-position-deletes": "2",
        "changed-partition-count": "1",
        "total-data-files": "2",
        "total-records": "20",
        "total-files-size": "2000",
        "total-delete-files": "1",
        "total-position-deletes": "2",
        "total-equality-deletes": "0",
        "frazil.root-entries": "3",
        "frazil.leaves-written": "0",
    }
    bench.append("E1", content_type=2, equality_ids=[1], record_count=7)
    assert _told(bench)["added-equality-delete-files"] == "1"
    assert _told(bench)["added-equality-deletes"] == "7"
    assert _told(bench)["total-delete-files"] == "2"
    assert _told(bench)["total-equality-deletes"] == "7"
    assert _told(bench)["total-data-files"] == "2"

    change = Change(
        removed=located("D1", "E1"), added=bench.files("D3"), base_snapshot_id=bench.tip_id()
    )
    bench.commit(replace(change, summary={"app-id": "x"}))
    told = _told(bench)
    assert told["operation"] == "overwrite"
    assert told["app-id"] == "x"
    assert told["deleted-data-files"] == "1"
    assert told["deleted-records"] == "10"
    assert told["removed-dvs"] == "1"
    assert told["removed-position-deletes"] == "2"
    assert told["removed-equality-delete-files"] == "1"
    assert told["removed-equality-deletes"] == "7"
    assert told["total-data-files"] == "2"
    assert told["total-records"] == "20"
    assert told["total-delete-files"] == "0"
    assert told["total-position-deletes"] == "0"
    assert told["total-equality-deletes"] == "0"


def test_partitions_that_changed_are_counted_once(tmp_path: Path) -> None:
    spec = PartitionSpec(
        PartitionField(2, 1000, IdentityTransform(), "country"),
        PartitionField(1, 1001, IdentityTransform(), "id"),
    )
    bench = Bench(tmp_path, spec=spec)
    rows = [("D1", "AT", 1), ("D2", "AT", 1), ("D3", "AT", None), ("D4", None, None)]
    entries = [
        {"location": name, "spec_id": 0, "partition.1000": country, "partition.1001": number}
        for name, country, number in rows
    ]
    bench.commit(Change(added=bench.entries(entries)))
    assert bench.tip.summary["changed-partition-count"] == "3"
    one, same = bench.entries(entries[:1]), bench.entries([entries[1]])
    assert changed_partitions(one, None, same) == 1
    # A batch without the column of another spec's field means the same partition.
    assert changed_partitions(bench.entries([entries[2]]), one.without("partition.1001")) == 1
    assert changed_partitions(None, EntryBatch.empty()) == 0


def test_totals_go_on_only_from_totals_that_are_known() -> None:
    before = Snapshot(
        snapshot_id=SnapshotId(1),
        sequence_number=1,
        timestamp_ms=1,
        root_manifest="r",
        summary={"total-records": "5", "total-data-files": "many"},
    )
    told = summarise(
        operation="append",
        added=Tally(data_files=1, records=10),
        removed=Tally(),
        before=Tally(),
        after=Tally(),
        partitions=0,
        parent=before,
        extra={},
    )
    assert told == {
        "operation": "append",
        "added-data-files": "1",
        "added-records": "10",
        "total-records": "15",
    }
