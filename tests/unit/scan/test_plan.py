"""From a snapshot and a filter to files, with a report of what was looked at."""

from __future__ import annotations

import json
from pathlib import Path

from frazil.commit.change import Change
from frazil.filter.text.filter_text import parse
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.transforms import BucketTransform, IdentityTransform
from frazil.scan.plan import MUST_MATCH, Plan, plan
from frazil.tree.read import LEAF, POSITION
from tests.support.pyiceberg_oracle import transformed
from tests.support.trees import Bench, bounds


def _plan(bench: Bench, where: str | None = None) -> Plan:
    expression = None if where is None else parse(where, bench.metadata.schema())
    return plan(bench.reader(), bench.tip, where=expression)


def _names(found: Plan) -> list[str]:
    return sorted(found.files.pylist("location"))


def _table(folder: Path) -> Bench:
    """Two files in a leaf, two in the root."""
    bench = Bench(folder, properties={"write.root.max-data-entries": "1"})
    first = [{"location": f"D{n}", **bounds(1, 10 * n, 10 * n + 9)} for n in (1, 2)]
    bench.commit(Change(added=bench.entries(first)))
    bench.commit(Change(added=bench.entries([{"location": "D3", **bounds(1, 30, 39)}])))
    return bench


def test_a_plan_has_no_columns_that_an_earlier_one_left_in_the_cache(tmp_path: Path) -> None:
    bench = _table(tmp_path)
    reader = bench.reader()
    schema = bench.metadata.schema()
    before = plan(reader, bench.tip).files
    plan(reader, bench.tip, where=parse(f"{schema.fields[0].name} = 15", schema))
    after = plan(reader, bench.tip).files
    assert after.keys == before.keys
    assert after.nbytes == before.nbytes


def test_no_table_has_no_files(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    found = plan(bench.reader(), None)
    assert found.files.num_rows == 0
    assert found.report.files == 0
    assert found.deletes is None


def test_files_come_from_root_and_leaves_with_their_addresses(tmp_path: Path) -> None:
    bench = _table(tmp_path)
    found = _plan(bench)
    leaf = bench.leaf_location("M1")
    where = {
        name: (place, position)
        for name, place, position in zip(
            found.files.pylist("location"),
            found.files.pylist(LEAF),
            found.files.pylist(POSITION),
            strict=True,
        )
    }
    assert where == {"D1": (leaf, 0), "D2": (leaf, 1), "D3": (None, None)}
    assert found.files.pylist(MUST_MATCH) == [True, True, True]
    assert found.table.num_rows == 3
    assert dict(
        zip(
            found.files.pylist("location"), found.files.pylist("tracking.first_row_id"), strict=True
        )
    ) == {"D1": 0, "D2": 10, "D3": 20}


def test_a_filter_prunes_at_both_levels_and_tells_why(tmp_path: Path) -> None:
    bench = _table(tmp_path)
    found = _plan(bench, "id >= 20 and id <= 29")
    assert _names(found) == ["D2"]
    assert found.files.pylist(MUST_MATCH) == [True]
    report = found.report
    assert (report.root.considered, report.root.pruned_by_bounds, report.root.survived) == (2, 1, 1)
    assert report.leaves.manifests_read == 1
    assert (report.leaves.considered, report.leaves.pruned_by_bounds) == (2, 1)
    assert (report.files, report.records, report.bytes) == (1, 10, 1000)
    assert _plan(bench, "id = 25").files.pylist(MUST_MATCH) == [False]


def test_dead_positions_are_not_considered(tmp_path: Path) -> None:
    bench = _table(tmp_path)
    bench.remove("D1")
    bench.delete_rows("D2", 4)
    found = _plan(bench)
    assert _names(found) == ["D2", "D3"]
    assert found.report.leaves.dead == 2
    words = " ".join(str(found.report).split())
    assert "1 entry considered: 1 left; 2 dead entries skipped;" in words, words
    assert " where " not in words
    assert found.report.files_with_vectors == 1
    vectors = dict(
        zip(
            found.files.pylist("location"),
            found.files.pylist("deletion_vector.cardinality"),
            strict=True,
        )
    )
    assert vectors == {"D2": 1, "D3": None}


def test_partitions_and_derived_columns_prune(tmp_path: Path) -> None:
    spec = PartitionSpec(
        PartitionField(2, 1000, IdentityTransform(), "country"),
        PartitionField(1, 1001, BucketTransform(16), "id_bucket"),
    )
    bench = Bench(tmp_path, spec=spec, properties={"write.root.max-data-entries": "1"})
    rows = [
        {
            "location": f"D{country}{bucket}",
            "spec_id": 0,
            "partition.1000": country,
            "partition.1001": bucket,
            **bounds(2, country, country),
            **bounds(3, bucket, bucket),
        }
        for country in ("AT", "DE")
        for bucket in range(16)
    ]
    bench.commit(Change(added=bench.entries(rows)))
    bucket = transformed(BucketTransform(16), bench.metadata.schema().find_type("id"), 34)
    found = _plan(bench, "country = 'DE' and id = 34")
    assert _names(found) == [f"DDE{bucket}"]
    assert found.report.leaves.pruned_by_partition == 31


def test_extra_columns_are_there_when_asked_for(tmp_path: Path) -> None:
    bench = _table(tmp_path)
    bare = plan(bench.reader(), bench.tip).files
    assert not bare.has("content_stats.1.value_count")
    more = plan(bench.reader(), bench.tip, extra_keys=["content_stats.1.value_count"]).files
    assert more.pylist("content_stats.1.value_count") == [10, 10, 10]


def test_a_report_reads_well_and_goes_to_json(tmp_path: Path) -> None:
    bench = _table(tmp_path)
    report = _plan(bench, "id = 15").report
    text = str(report)
    assert text.startswith(f"scan of snapshot {bench.tip_id()} where ")
    lines = text.splitlines()
    begun = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert [word for word in begun if word in {"root", "leaves"}] == ["root", "leaves"]
    assert "→ 1 file, 10 records, 1.0 kB" in lines
    assert lines[-1].startswith("  planned in ")
    told = json.loads(json.dumps(report.to_dict()))
    assert told["leaves"]["manifests_read"] == 1
    assert told["files"] == 1
    empty = Bench(tmp_path / "empty")
    assert str(plan(empty.reader(), None).report).startswith("scan of no snapshot\n")
