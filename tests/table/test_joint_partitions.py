"""Partitions made from several columns: `bucket[16](a, b)`."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import mmh3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

import frazil
from frazil.format.metadata.metadata_json import loads

SCHEMA = pa.schema(
    [
        pa.field("shop", pa.int32()),
        pa.field("product", pa.string()),
        pa.field("sold", pa.int64()),
    ]
)
PRODUCTS = ("tea", "coffee", "milk", "sugar", "bread")
BUCKETS = 8


def bucket(shop: int | None, product: str | None) -> int | None:
    """By arithmetic: Murmur3 of the bytes of both, one after the other."""
    if shop is None or product is None:
        return None
    data = shop.to_bytes(8, "little", signed=True) + product.encode()
    return (mmh3.hash(data) & 0x7FFFFFFF) % BUCKETS


def sales() -> pa.Table:
    """Every product in each of twenty shops, and three rows with nulls."""
    rows: list[dict[str, object]] = [
        {"shop": shop, "product": product, "sold": shop * 10 + at}
        for shop in range(20)
        for at, product in enumerate(PRODUCTS)
    ]
    rows += [{"shop": None, "product": "tea", "sold": -1}, {"shop": 3, "sold": -2}, {"sold": -3}]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@pytest.fixture
def stock(catalog: frazil.Catalog) -> frazil.Table:
    table = catalog.create_table(
        "shop.sales", SCHEMA, partition_by=[f"bucket[{BUCKETS}](shop, product)"]
    )
    table.append(sales())
    return table


def files_left(table: frazil.Table, where: str) -> int:
    return table.scan(where).plan().files.num_rows


def test_rows_lie_in_the_bucket_of_both_columns(stock: frazil.Table) -> None:
    assert [part.name for part in stock.spec.fields] == [f"shop_product_bucket_{BUCKETS}"]
    rows = stock.scan(columns=["shop", "product", "_partition"]).to_arrow().to_pylist()
    assert len(rows) == 103
    for row in rows:
        assert row["_partition"] == {
            f"shop_product_bucket_{BUCKETS}": bucket(row["shop"], row["product"])
        }


def test_conditions_on_both_columns_leave_one_file(stock: frazil.Table) -> None:
    assert files_left(stock, "shop = 7 and product = 'milk'") == 1
    assert files_left(stock, "product = 'milk' and sold > 0 and shop = 7") == 1
    wanted = {bucket(shop, "milk") for shop in (7, 8)}
    assert files_left(stock, "shop in (7, 8) and product = 'milk'") == len(wanted)
    root = stock.scan("shop = 7 and product = 'milk'").plan().report.root
    assert root.pruned_by_partition == BUCKETS - 1
    assert root.pruned_by_derived == 1  # rows with nulls: their tuple may as well be missing


def test_one_of_the_columns_alone_leaves_what_its_bounds_leave(stock: frazil.Table) -> None:
    for where in ("shop = 7", "product = 'milk'", "shop = 7 or product = 'milk'"):
        expected = duckdb.sql(
            f"SELECT count(*) FROM sales WHERE {where}",
            connection=_beside(),
        ).fetchall()
        assert [(stock.scan(where).count(),)] == expected, where


def _beside() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("sales", sales())
    return connection


@pytest.mark.parametrize("shop", [0, 3, 19, 99])
@pytest.mark.parametrize("product", ["tea", "sugar", "wine"])
def test_no_row_is_lost(stock: frazil.Table, shop: int, product: str) -> None:
    where = f"shop = {shop} and product in ('{product}', 'bread')"
    expected = sorted(
        row["sold"]
        for row in sales().to_pylist()
        if row["shop"] == shop and row["product"] in (product, "bread")
    )
    assert sorted(stock.scan(where).to_arrow()["sold"].to_pylist()) == expected


def test_leaves_are_pruned_by_the_derived_column(catalog: frazil.Catalog) -> None:
    table = catalog.create_table(
        "shop.many",
        SCHEMA,
        partition_by=["bucket[64](shop, product)"],
        properties={"write.leaf.target-entries": "100", "write.root.max-data-entries": "100"},
    )
    rows = pa.table(
        {
            "shop": pa.array([i % 997 for i in range(4000)], pa.int32()),
            "product": [PRODUCTS[i % 5] for i in range(4000)],
            "sold": pa.array(range(4000), pa.int64()),
        },
        schema=SCHEMA,
    )
    for start in range(0, 4000, 500):
        table.append(rows.slice(start, 500))
    table.rewrite_manifests()
    report = table.scan("shop = 17 and product = 'milk'").plan().report
    assert report.root.considered > 3
    assert report.leaves.manifests_read <= 2
    assert report.files <= 8  # one of each append


def test_the_definition_is_written_as_source_ids(
    stock: frazil.Table, catalog: frazil.Catalog
) -> None:
    spec = json.loads(_definition(stock))["partition-specs"][0]["fields"][0]
    assert spec == {
        "source-ids": [1, 2],
        "field-id": 1000,
        "transform": f"bucket[{BUCKETS}]",
        "name": f"shop_product_bucket_{BUCKETS}",
    }
    expression = json.loads(_definition(stock))["expressions"][0]
    assert expression["expr"]["source-ids"] == [1, 2]
    again = catalog.load_table("shop.sales")
    assert again.spec == stock.spec
    assert files_left(again, "shop = 7 and product = 'milk'") == 1


def _definition(table: frazil.Table) -> str:
    from frazil.format.metadata.metadata_json import definition_text

    return definition_text(table.metadata)


def test_the_example_of_the_design_document_loads() -> None:
    document = {
        "format-version": 4,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "/t",
        "last-sequence-number": 0,
        "last-updated-ms": 0,
        "last-column-id": 9,
        "current-schema-id": 0,
        "schemas": [
            {
                "type": "struct",
                "schema-id": 0,
                "fields": [
                    {"id": 2, "name": "a", "required": False, "type": "int"},
                    {"id": 3, "name": "b", "required": False, "type": "string"},
                    {"id": 9, "name": "ts", "required": False, "type": "timestamp"},
                ],
            }
        ],
        "default-spec-id": 0,
        "partition-specs": [
            {
                "spec-id": 0,
                "fields": [
                    {"field-id": 1000, "source-id": 9, "transform": "day", "name": "ts_day"},
                    {
                        "field-id": 1001,
                        "source-ids": [2, 3],
                        "transform": "bucket[16]",
                        "name": "bucket_a_b",
                    },
                ],
            }
        ],
        "last-partition-id": 1001,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
        "expressions": [
            {
                "expr-id": 104,
                "expr": {"source-ids": [2, 3], "transform": "bucket[16]", "name": "bucket_a_b"},
                "partition-field-id": 1001,
            }
        ],
    }
    metadata, _ = loads(json.dumps(document).encode(), path="v1.metadata.json")
    assert str(metadata.spec().fields[1]) == "1001: bucket_a_b: bucket[16](2, 3)"
    assert metadata.expressions[0].source_ids == (2, 3)


@pytest.mark.parametrize(
    ("term", "told"),
    [
        ("bucket[16](shop, shop)", "names column 'shop' twice"),
        ("bucket[16](shop, nope)", "unknown column 'nope'"),
        ("truncate[4](shop, product)", "truncate"),
        ("day(shop, product)", "day takes one column"),
        ("bucket(shop, product)", "'shop' is not a width"),
    ],
)
def test_what_cannot_be_a_bucket_is_refused(catalog: frazil.Catalog, term: str, told: str) -> None:
    with pytest.raises(frazil.InvalidInput, match=told):
        catalog.create_table("shop.bad", SCHEMA, partition_by=[term])


def test_partitioning_can_change_both_ways(catalog: frazil.Catalog) -> None:
    table = catalog.create_table("shop.changed", SCHEMA, partition_by=["shop"])
    table.append(sales().slice(0, 10))
    table.evolve_partitions().remove("shop").add("bucket[4](shop, product)").commit()
    table.append(sales().slice(10, 50))
    assert table.scan("shop = 5 and product = 'tea'").to_arrow()["sold"].to_pylist() == [50]
    with pytest.raises(frazil.InvalidInput, match="repeats"):
        table.evolve_partitions().add("bucket[4](shop, product)", name="again")
    with pytest.raises(frazil.InvalidInput, match="partitioned by it"):
        table.evolve_schema().drop_column("product").commit()
    table.evolve_partitions().rename("shop_product_bucket_4", "pair").commit()
    table.evolve_partitions().remove("bucket[4](shop, product)").commit()
    assert not table.spec.fields
    table.append(sales().slice(60))
    assert table.scan().count() == 103
    assert table.check().ok


def test_overwritten_partitions_are_those_of_both_columns(stock: frazil.Table) -> None:
    new = pa.table({"shop": [7], "product": ["milk"], "sold": [0]}, schema=SCHEMA)
    stock.overwrite_partitions(new)
    gone = bucket(7, "milk")
    kept = [row for row in sales().to_pylist() if bucket(row["shop"], row["product"]) != gone]
    assert stock.scan().count() == len(kept) + 1


def test_rows_change_and_files_are_compacted(stock: frazil.Table) -> None:
    stock.delete("shop = 7 and product = 'milk'")
    stock.update({"sold": frazil.expr("sold + 1000")}, where="shop = 8 and product = 'milk'")
    stock.append(sales().slice(0, 40))
    stock.compact()
    rows = stock.scan("product = 'milk' and shop = 8").to_arrow()["sold"].to_pylist()
    assert sorted(rows) == [1082]
    assert stock.scan("product = 'milk' and shop = 7").to_arrow()["sold"].to_pylist() == [72]
    assert stock.check().ok


def test_a_file_of_one_value_each_is_added_and_others_are_refused(
    stock: frazil.Table, tmp_path: Path
) -> None:
    fitting, mixed = str(tmp_path / "one.parquet"), str(tmp_path / "two.parquet")
    pq.write_table(pa.table({"shop": [5], "product": ["tea"], "sold": [1]}, schema=SCHEMA), fitting)
    pq.write_table(sales().slice(0, 2), mixed)
    stock.add_files([fitting])
    assert stock.scan("shop = 5 and product = 'tea'").count() == 2
    with pytest.raises(frazil.FormatError, match="more than one partition"):
        stock.add_files([mixed])


def test_sql_declares_shows_and_prunes_them(catalog: frazil.Catalog) -> None:
    catalog.sql(
        "CREATE TABLE shop.s (shop INT, product TEXT, sold BIGINT) "
        "PARTITIONED BY (bucket(8, shop, product))"
    )
    catalog.load_table("shop.s").append(sales())
    text = catalog.sql("SHOW CREATE TABLE shop.s").to_arrow().to_pylist()
    assert "PARTITIONED BY (bucket(8, shop, product))" in str(text)
    plan = catalog.sql("EXPLAIN SELECT sold FROM shop.s WHERE shop = 7 AND product = 'milk'")
    assert "1 file" in str(plan.to_arrow().to_pylist()[0])
    rows = catalog.sql("SELECT sold FROM shop.s WHERE shop = 7 AND product = 'milk'")
    assert rows.to_arrow().to_pylist() == [{"sold": 72}]
    catalog.sql("ALTER TABLE shop.s REPLACE PARTITION FIELD bucket(8, shop, product) WITH shop")
    catalog.sql("ALTER TABLE shop.s ADD PARTITION FIELD bucket(4, shop, product)")
    assert [part.name for part in catalog.load_table("shop.s").spec.fields] == [
        "shop",
        "shop_product_bucket_4",
    ]


@pytest.mark.parametrize("version", [2, 3])
def test_published_tables_show_the_field_as_void(stock: frazil.Table, version: int) -> None:
    stock.delete("shop = 7 and product = 'milk'")
    location = stock.publish(format_version=version).metadata_location
    other = StaticTable.from_metadata(location)
    assert str(other.spec().fields[0].transform) == "void"
    where = "shop == 8 and product == 'milk'"
    assert other.scan(row_filter=where).to_arrow()["sold"].to_pylist() == [82]
    assert other.scan().to_arrow().num_rows == 102
