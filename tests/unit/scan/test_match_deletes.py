"""Which delete files apply to which data files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from frazil.commit.change import Change
from frazil.commit.updates import SetSchema
from frazil.errors import FormatError
from frazil.filter.text.filter_text import parse
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import FILE_PATH, stats_key
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import BucketTransform, IdentityTransform, VoidTransform
from frazil.iceberg.types import DoubleType, IntegerType, LongType, NestedField, StringType
from frazil.scan.match_deletes import DeleteFiles
from frazil.scan.plan import plan
from frazil.tree.partition_tuples import PartitionColumn, PartitionColumns
from tests.support.trees import Bench, bounds

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "country", StringType(), required=False),
    NestedField(3, "score", DoubleType(), required=False),
)
BY_COUNTRY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "country"))
BY_SCORE = PartitionColumns(
    by_spec={0: (PartitionColumn(name="score", key="partition.1000", stats_id=3),)}
)


def _add(bench: Bench, *rows: Mapping[str, Any]) -> None:
    bench.commit(Change(added=bench.entries(rows)))


def _equality(name: str, *ids: int, **more: Any) -> dict[str, Any]:
    stated = {key.replace("__", "."): value for key, value in more.items()}
    return {"location": name, "content_type": 2, "equality_ids": list(ids), **stated}


def _matches(bench: Bench, where: str | None = None) -> dict[str, list[str]]:
    """Data file to the delete files that apply to it."""
    filter = None if where is None else parse(where, bench.metadata.schema())
    found = plan(bench.reader(), bench.tip, where=filter)
    if found.deletes is None:
        return {}
    names, deletes = found.files.pylist("location"), found.deletes.pylist("location")
    return {names[row]: [deletes[d] for d in hits] for row, hits in found.matches.items()}


def test_an_equality_delete_applies_to_older_files_only(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    _add(bench, {"location": "D1"})
    _add(bench, _equality("E1", 1), {"location": "D2"})  # same snapshot: not older
    _add(bench, {"location": "D3"})
    assert _matches(bench) == {"D1": ["E1"]}
    _add(bench, _equality("E2", 1))
    assert _matches(bench) == {"D1": ["E1", "E2"], "D2": ["E2"], "D3": ["E2"]}


def test_bounds_that_do_not_meet_rule_a_delete_out(tmp_path: Path) -> None:
    bench = Bench(tmp_path, schema=SCHEMA)
    _add(
        bench,
        {"location": "low", **bounds(1, 1, 10)},
        {"location": "high", **bounds(1, 11, 20)},
        {"location": "unknown"},
        {"location": "half", stats_key(1, "lower_bound"): 9},
    )
    _add(bench, _equality("E", 1) | bounds(1, 7, 8))
    assert _matches(bench) == {"low": ["E"], "unknown": ["E"]}


def test_a_delete_without_statistics_applies_to_every_older_file(tmp_path: Path) -> None:
    bench = Bench(tmp_path, schema=SCHEMA)
    _add(bench, {"location": "low", **bounds(1, 1, 10)}, {"location": "unknown"})
    _add(bench, _equality("E", 1))
    assert _matches(bench) == {"low": ["E"], "unknown": ["E"]}


def test_every_compared_column_must_be_able_to_meet(tmp_path: Path) -> None:
    bench = Bench(tmp_path, schema=SCHEMA)
    _add(
        bench,
        {"location": "D1", **bounds(1, 1, 10), **bounds(2, "AT", "DE")},
        {"location": "D2", **bounds(1, 1, 10), **bounds(2, "FR", "US")},
    )
    _add(bench, _equality("E", 1, 2) | bounds(1, 5, 5) | bounds(2, "AU", "AU"))
    assert _matches(bench) == {"D1": ["E"]}


def test_nulls_and_nans_in_a_delete_are_outside_its_bounds(tmp_path: Path) -> None:
    bench = Bench(tmp_path, schema=SCHEMA)
    nans = stats_key(3, "nan_value_count")
    _add(bench, {"location": "D", **bounds(1, 1, 1), **bounds(3, 50.0, 60.0)})
    far = bounds(3, 1.0, 2.0)
    _add(bench, _equality("plain", 3) | far | {nans: 0})
    _add(bench, _equality("with nan", 3) | far | {nans: 1})
    _add(bench, _equality("nan unknown", 3) | far)
    _add(bench, _equality("with null", 3) | bounds(3, 1.0, 2.0, nulls=1) | {nans: 0})
    assert _matches(bench) == {"D": ["with nan", "nan unknown", "with null"]}


def test_a_delete_of_one_partition_stays_in_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path, spec=BY_COUNTRY)
    files = [{"location": f"D-{c}", "spec_id": 0, "partition.1000": c} for c in ("AT", "DE", None)]
    _add(bench, *files)
    _add(bench, _equality("E-AT", 1, spec_id=0, partition__1000="AT"))
    _add(bench, _equality("E-null", 1, spec_id=0, partition__1000=None))
    _add(bench, _equality("E-none", 1, spec_id=0, partition__1000="XX"))
    assert _matches(bench) == {"D-AT": ["E-AT"], "D-None": ["E-null"]}
    # Also where no file has a value of the partition column at all: its rows are null.
    only_null = Bench(tmp_path / "null", spec=BY_COUNTRY)
    _add(only_null, {"location": "D", "spec_id": 0})
    _add(only_null, _equality("E", 1, spec_id=0, partition__1000="AT"))
    assert _matches(only_null) == {}


def test_a_missing_tuple_is_recovered_from_bounds(tmp_path: Path) -> None:
    bench = Bench(tmp_path, spec=BY_COUNTRY)
    files = [{"location": f"D-{c}", "spec_id": 0, **bounds(2, c, c)} for c in ("AT", "DE")]
    _add(bench, *files, {"location": "tuple", "spec_id": 0, "partition.1000": "AT"})
    _add(bench, _equality("with tuple", 1, spec_id=0, partition__1000="AT"))
    _add(bench, _equality("without", 1, spec_id=0) | bounds(2, "DE", "DE"))
    assert _matches(bench) == {
        "D-AT": ["with tuple"],
        "D-DE": ["without"],
        "tuple": ["with tuple"],
    }


def test_the_tuple_of_a_transform_is_recovered_from_the_derived_column(tmp_path: Path) -> None:
    spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "id_bucket"))
    bench = Bench(tmp_path, spec=spec)
    (derived,) = bench.metadata.expressions
    files = [{"location": f"D{n}", "spec_id": 0, **bounds(derived.expr_id, n, n)} for n in (0, 3)]
    _add(bench, *files)
    _add(bench, _equality("E", 2, spec_id=0, partition__1000=3))
    assert _matches(bench) == {"D3": ["E"]}


def test_bounds_that_differ_tell_no_tuple(tmp_path: Path) -> None:
    bench = Bench(tmp_path, spec=BY_COUNTRY)
    _add(bench, {"location": "D1", "spec_id": 0, **bounds(2, "AT", "DE")})
    _add(bench, {"location": "D2", **bounds(2, "AT", "DE")})  # not partitioned
    _add(bench, _equality("E", 1, spec_id=0, partition__1000="AT"))
    with pytest.raises(FormatError, match=r"D1: country: .*no partition tuple.*'AT' and 'DE'"):
        _matches(bench)


def test_a_delete_that_is_not_partitioned_applies_everywhere(tmp_path: Path) -> None:
    bench = Bench(tmp_path, spec=BY_COUNTRY)
    _add(bench, {"location": "D1", "spec_id": 0, "partition.1000": "AT"})
    _add(bench, _equality("E", 1))
    assert _matches(bench) == {"D1": ["E"]}


def test_a_spec_of_nothing_but_void_fields_is_not_partitioned(tmp_path: Path) -> None:
    spec = PartitionSpec(PartitionField(2, 1000, VoidTransform(), "gone"))
    bench = Bench(tmp_path, spec=spec)
    _add(bench, {"location": "D1"}, {"location": "D2", "spec_id": 0})
    _add(bench, _equality("E", 1, spec_id=0))
    assert _matches(bench) == {"D1": ["E"], "D2": ["E"]}


def test_partitions_of_nan_are_the_same_partition() -> None:
    types = {"partition.1000": pa.float64()}
    delete = {**_equality("E", 1, spec_id=0), "tracking.sequence_number": 5}
    deletes = EntryBatch.from_rows([{**delete, "partition.1000": math.nan}], types)
    files = EntryBatch.from_rows(
        [
            {"spec_id": 0, "tracking.sequence_number": 1, "partition.1000": value}
            for value in (math.nan, 1.0, None)
        ],
        types,
    )
    found = DeleteFiles(batch=deletes, location="/t", partitions=BY_SCORE)
    assert found.match(files) == {0: (0,)}


def test_a_promoted_column_is_compared_in_the_wider_type(tmp_path: Path) -> None:
    narrow = Schema(NestedField(1, "id", IntegerType(), required=True))
    bench = Bench(tmp_path, schema=narrow)
    _add(bench, {"location": "D1", **bounds(1, 1, 10)})
    bench.commit(
        Change(
            updates=(
                SetSchema(
                    schema=Schema(NestedField(1, "id", LongType(), required=True)),
                    based_on_schema_id=0,
                    based_on_last_column_id=1,
                ),
            )
        )
    )
    _add(bench, _equality("far", 1) | bounds(1, 2**40, 2**41))
    _add(bench, _equality("near", 1) | bounds(1, 5, 2**41))
    assert _matches(bench) == {"D1": ["near"]}


def test_deletes_in_leaves_are_matched_and_a_filter_does_not_hide_them(tmp_path: Path) -> None:
    properties = {"write.root.max-data-entries": "1", "write.root.max-delete-entries": "1"}
    bench = Bench(tmp_path, schema=SCHEMA, properties=properties)
    _add(bench, {"location": "D1", **bounds(1, 1, 10)}, {"location": "D2", **bounds(1, 50, 60)})
    _add(bench, _equality("E1", 1) | bounds(1, 5, 5), _equality("E2", 1) | bounds(1, 55, 55))
    _add(bench, {"location": "D3", **bounds(1, 1, 60)})
    assert [entry.name for entry in bench.root()] == ["M1", "N1", "D3"]
    assert _matches(bench) == {"D1": ["E1"], "D2": ["E2"]}
    # The filter's own column is not the delete's: bounds of the delete's are read all the same.
    assert _matches(bench, "country = 'AT'") == {"D1": ["E1"], "D2": ["E2"]}
    assert _matches(bench, "id = 5") == {"D1": ["E1"]}


def _position(name: str, sequence: int, **more: Any) -> dict[str, Any]:
    stated = {key.replace("__", "."): value for key, value in more.items()}
    return {"location": name, "content_type": 1, "tracking.sequence_number": sequence, **stated}


@pytest.mark.parametrize(
    "spelled", ["data/a.parquet", "/t/data/a.parquet", "file:/t/data/a.parquet"]
)
def test_position_deletes_of_one_file_apply_by_its_address(spelled: str) -> None:
    path = {stats_key(FILE_PATH, name): spelled for name in ("lower_bound", "upper_bound")}
    deletes = EntryBatch.from_rows(
        [_position("P1", 5, referenced_file=spelled), _position("P2", 5) | path],
        dict.fromkeys(path, pa.string()),
    )
    files = EntryBatch.from_rows(
        [
            {"location": "data/a.parquet", "tracking.sequence_number": 5},
            {"location": "data/b.parquet", "tracking.sequence_number": 5},
        ]
    )
    found = DeleteFiles(batch=deletes, location="/t", partitions=PartitionColumns(by_spec={}))
    assert found.match(files) == {0: (0, 1)}


def test_position_deletes_apply_to_files_of_their_own_snapshot_and_older() -> None:
    deletes = EntryBatch.from_rows([_position("P1", 5), _position("P2", 5, referenced_file="a")])
    files = EntryBatch.from_rows(
        [{"location": name, "tracking.sequence_number": age} for name, age in (("a", 6), ("b", 5))]
    )
    found = DeleteFiles(batch=deletes, location="/t", partitions=PartitionColumns(by_spec={}))
    assert found.match(files) == {1: (0,)}
