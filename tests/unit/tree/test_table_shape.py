"""What manifests hold follows from the table's definition and conforms to its current schema."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from frazil.commit.change import Change
from frazil.commit.updates import SetProperties, SetSchema
from frazil.errors import InvalidInput
from frazil.filter.text.filter_text import parse
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import BucketTransform, IdentityTransform
from frazil.iceberg.types import IntegerType, LongType, NestedField, StringType, UUIDType
from frazil.tree.table_shape import shape_of
from tests.support.trees import Bench, bounds

WIDE = Schema(
    NestedField(1, "id", IntegerType(), required=True),
    NestedField(2, "key", UUIDType(), required=False),
    NestedField(3, "note", StringType(), required=False),
)
PARTS = PartitionSpec(
    PartitionField(1, 1000, BucketTransform(4), "id_bucket"),
    PartitionField(2, 1001, IdentityTransform(), "key"),
)


def test_a_shape_names_derived_columns_and_uuids(tmp_path: Path) -> None:
    metadata = Bench(tmp_path, schema=WIDE, spec=PARTS).metadata
    names = shape_of(metadata).names
    assert names.partition == {1000: "id_bucket", 1001: "key"}
    assert set(names.uuids) == {
        "content_stats.2.lower_bound",
        "content_stats.2.upper_bound",
        "partition.1001",
    }
    assert [field.id for field in shape_of(metadata).fields][:4] == [1, 2, 3, 900_000]


def test_a_shape_is_worked_out_once_per_definition(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    before = shape_of(bench.metadata)
    bench.commit(Change(updates=(SetProperties(updates={"note": "x"}),)))
    bench.append("D1")
    assert shape_of(bench.metadata) is before


def test_a_condition_is_compiled_once_unless_it_lists_many_values(tmp_path: Path) -> None:
    shape = shape_of(Bench(tmp_path, schema=WIDE).metadata)
    short = parse("id = 3", WIDE)
    assert parse("id = 3", WIDE) is short
    assert shape.filter_of(short, WIDE) is shape.filter_of(short, WIDE)
    long = parse(f"id in ({', '.join(map(str, range(200)))})", WIDE)
    assert shape.filter_of(long, WIDE) is not shape.filter_of(long, WIDE)


def test_a_condition_is_compiled_for_each_schema(tmp_path: Path) -> None:
    """A text means another column once names have changed."""
    shape = shape_of(Bench(tmp_path, schema=WIDE).metadata)
    swapped = Schema(
        NestedField(1, "note", IntegerType(), required=True),
        NestedField(3, "id", IntegerType(), required=False),
    )
    ids = [
        shape.filter_of(parse("id = 3", schema), schema).required_keys for schema in (WIDE, swapped)
    ]
    assert "content_stats.1.lower_bound" in ids[0]
    assert "content_stats.3.lower_bound" in ids[1]
    assert "content_stats.1.lower_bound" not in ids[1]


def _evolve(bench: Bench, schema: Schema) -> None:
    metadata = bench.metadata
    bench.commit(
        Change(
            updates=(
                SetSchema(
                    schema=schema,
                    based_on_schema_id=metadata.current_schema_id,
                    based_on_last_column_id=metadata.last_column_id,
                ),
            )
        )
    )


def test_a_root_written_after_evolution_has_the_current_columns(tmp_path: Path) -> None:
    bench = Bench(tmp_path, schema=WIDE)
    rows = [{"location": "D1", **bounds(1, 5, 6), **bounds(3, "a", "b")}]
    bench.commit(Change(added=bench.entries(rows)))
    promoted = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "key", UUIDType(), required=False),
        NestedField(4, "more", StringType(), required=False),
    )
    _evolve(bench, promoted)
    bench.append("D2")
    root = bench.tree().root
    assert root.column("content_stats.1.lower_bound").type == pa.int64()
    assert root.pylist("content_stats.1.lower_bound") == [5, None]
    assert not [key for key in root.keys if key.startswith("content_stats.3.")]


def test_leaves_written_after_evolution_have_the_current_columns(tmp_path: Path) -> None:
    bench = Bench(tmp_path, schema=WIDE, properties={"write.root.max-data-entries": "1"})
    bench.commit(Change(added=bench.entries([{"location": "D1", **bounds(1, 5, 6)}])))
    _evolve(bench, Schema(NestedField(1, "id", LongType(), required=True)))
    bench.append("D2")
    (leaf,) = bench.tree().leaves()
    live = bench.reader().live(leaf)
    assert live.column("content_stats.1.lower_bound").type == pa.int64()
    assert bench.tree().root.row(0)["content_stats.1.upper_bound"] == 6


def test_the_codec_comes_from_the_table(tmp_path: Path) -> None:
    sizes = {}
    for codec in ("zstd", "uncompressed", "gzip"):
        properties = {"write.metadata.compression-codec": codec}
        bench = Bench(tmp_path / codec, properties=properties)
        names = [f"data/{n}.parquet" for n in range(50)]
        sizes[codec] = bench.append(*names).metadata_bytes
        assert len(bench.live()) == 50
    assert sizes["zstd"] < sizes["uncompressed"]
    bench = Bench(tmp_path / "bad", properties={"write.metadata.compression-codec": "rar"})
    with pytest.raises(InvalidInput, match="compression-codec is 'rar'"):
        bench.append("D1")
