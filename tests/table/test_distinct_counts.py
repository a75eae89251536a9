"""Distinct values of columns: counted, stored as Iceberg does, ignored when out of date."""

from __future__ import annotations

import datetime
import struct
import uuid
from decimal import Decimal
from pathlib import Path

import datasketches
import mmh3
import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import frazil
from frazil.format.vectors.puffin import read_footer

ROWS = pa.table(
    {
        "id": pa.array(range(1000), pa.int64()),
        "size": pa.array([i % 7 for i in range(1000)], pa.int32()),
        "country": [None if i % 5 == 0 else f"C{i % 30}" for i in range(1000)],
        "price": pa.array([Decimal(i % 11) for i in range(1000)], pa.decimal128(9, 2)),
        "day": [datetime.date(2024, 1, 1 + i % 28) for i in range(1000)],
        "at": [datetime.datetime(2024, 1, 1, i % 24, tzinfo=datetime.UTC) for i in range(1000)],
        "weight": [float("nan") if i % 2 else i % 4 / 2 for i in range(1000)],
        "key": pa.array([uuid.UUID(int=i % 3).bytes for i in range(1000)], pa.uuid()),
        "flag": [i % 2 == 0 for i in range(1000)],
        "tags": [["a"]] * 1000,
    }
)
DISTINCT = {
    "id": 1000,
    "size": 7,
    "country": 24,  # thirty countries without the six whose number 5 divides
    "price": 11,
    "day": 28,
    "at": 24,
    "weight": 3,
    "key": 3,
    "flag": 2,
}


def on_disk(address: str) -> Path:
    return Path(address.removeprefix("file://"))


@pytest.fixture
def things(catalog: frazil.Catalog) -> frazil.Table:
    table = catalog.create_table("shop.things", ROWS.schema)
    table.append(ROWS.slice(0, 600))
    table.append(ROWS.slice(600))
    return table


def test_every_primitive_column_is_counted(things: frazil.Table) -> None:
    done = things.compute_statistics()
    assert done.distinct == DISTINCT
    assert things.distinct_counts() == DISTINCT
    assert things.check(deep=True).ok


def test_counts_of_another_snapshot_are_ignored(things: frazil.Table) -> None:
    first = things.current_snapshot()
    assert first is not None
    things.compute_statistics(["size"])
    assert things.distinct_counts() == {"size": 7}
    things.delete("size = 3")
    assert things.distinct_counts() == {}
    assert things.distinct_counts(as_of=first.snapshot_id) == {"size": 7}
    things.compute_statistics(["size", "flag"])
    assert things.distinct_counts() == {"size": 6, "flag": 2}


def test_deleted_rows_do_not_count(things: frazil.Table) -> None:
    things.delete("id >= 10")
    assert things.compute_statistics(["id"]).distinct == {"id": 10}


def test_the_blob_is_a_sketch_of_single_values(things: frazil.Table) -> None:
    data = on_disk(things.compute_statistics(["size"]).statistics_file).read_bytes()
    (blob,) = read_footer(data).blobs
    assert (blob.type, blob.properties) == ("apache-datasketches-theta-v1", {"ndv": "7"})
    sketch = datasketches.compact_theta_sketch.deserialize(
        data[blob.offset : blob.offset + blob.length]
    )
    # An int is hashed as four bytes, little endian; a sketch keeps the hash without its last bit.
    expected = (
        mmh3.hash64(struct.pack("<i", value), 9001, signed=False)[0] >> 1 for value in range(7)
    )
    assert sorted(sketch) == sorted(expected)


def test_pyiceberg_finds_them_in_published_metadata(things: frazil.Table) -> None:
    done = things.compute_statistics(["size"])
    other = StaticTable.from_metadata(things.publish(format_version=3).metadata_location)
    (file,) = other.metadata.statistics
    assert file.statistics_path == done.statistics_file
    assert file.file_size_in_bytes == on_disk(done.statistics_file).stat().st_size
    (blob,) = file.blob_metadata
    assert (blob.type, blob.fields, blob.properties) == (
        "apache-datasketches-theta-v1",
        [2],
        {"ndv": "7"},
    )


def test_files_of_counts_that_were_replaced_are_orphans(things: frazil.Table) -> None:
    old = things.compute_statistics(["size"]).statistics_file
    new = things.compute_statistics(["size"]).statistics_file
    now = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)
    found = things.remove_orphan_files(older_than=now, dry_run=True).files
    assert [file.path for file in found] == [old]
    assert on_disk(new).exists()


def test_the_file_stays_as_long_as_its_snapshot(things: frazil.Table) -> None:
    file = on_disk(things.compute_statistics(["size"]).statistics_file)
    things.delete("size = 3")
    tomorrow = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)
    things.remove_orphan_files(older_than=tomorrow)
    assert file.exists()
    things.expire_snapshots(older_than=tomorrow, keep_last=1)
    assert not file.exists()
    assert things.check(deep=True).ok


def test_what_cannot_be_counted_is_refused(things: frazil.Table, catalog: frazil.Catalog) -> None:
    with pytest.raises(frazil.InvalidInput, match="column 'tags' is a list"):
        things.compute_statistics(["tags"])
    with pytest.raises(frazil.InvalidInput, match="unknown column 'nope'"):
        things.compute_statistics(["nope"])
    empty = catalog.create_table("shop.empty", ROWS.schema)
    with pytest.raises(frazil.InvalidInput, match="no snapshot"):
        empty.compute_statistics()


def test_sql_calls_it_by_icebergs_name(things: frazil.Table, catalog: frazil.Catalog) -> None:
    rows = catalog.sql(
        "CALL system.compute_table_stats(table => 'shop.things', columns => ['size', 'flag'])"
    ).to_arrow()
    assert rows.column_names == ["statistics_file"]
    assert on_disk(rows["statistics_file"][0].as_py()).exists()
    assert things.distinct_counts() == {"size": 7, "flag": 2}


def test_sql_plans_with_the_counts_until_the_next_commit(
    catalog: frazil.Catalog, things: frazil.Table
) -> None:
    def groups_expected() -> str:
        plan = catalog.sql("EXPLAIN SELECT size, sum(id) FROM shop.things GROUP BY size")
        return str(plan.to_pylist()[-1]["plan"]).splitlines()[0]

    assert groups_expected() != "Hash group by: about 7 rows"
    things.compute_statistics()
    assert groups_expected() == "Hash group by: about 7 rows"
    counts = "count(*), count(country), count(DISTINCT country), min(size), max(id)"
    every, no_country = f"SELECT {counts} FROM shop.things", "WHERE country IS NULL"
    assert list(catalog.sql(every).to_pylist()[0].values()) == [1000, 800, 24, 0, 999]
    assert list(catalog.sql(f"{every} {no_country}").to_pylist()[0].values())[:3] == [200, 0, 0]
    assert catalog.sql("SELECT id FROM shop.things WHERE size > 6").to_pylist() == []
    things.append(ROWS.slice(0, 1))
    assert groups_expected() != "Hash group by: about 7 rows"
