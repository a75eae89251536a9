"""Plain `spark.sql` on a registered catalog: statements from the files that every engine runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import frazil
import frazil.spark
from frazil.sql.output.display import cell
from tests.spark.shop import content, orders, row
from tests.support.sqllogic import check_file

pytestmark = pytest.mark.spark

FILES = [
    path
    for path in sorted((Path(__file__).parents[1] / "sql").glob("*.test"))
    if path.stem not in ("transactions", "views")  # which Spark's catalog does not have
]
ONE = "SELECT * FROM frazil.shop.orders"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_statements_of_file(path: Path, spark: Any, catalog: frazil.Catalog) -> None:
    frazil.spark.register(spark, catalog)
    spark.sql("USE frazil")

    def run(text: str) -> list[list[str]]:
        rows = spark.sql(text).toArrow()
        columns = [column.to_pylist() for column in rows.columns]
        return [
            [cell(value).replace("\n", "\\n") for value in each]
            for each in zip(*columns, strict=True)
        ]

    check_file(path, "spark", run)


def planned(spark: Any, query: str) -> str:
    """The plan of a query as Spark prints it."""
    return str(spark.sql(query)._jdf.queryExecution().toString())


def test_partitions_are_shown(spark: Any, table: frazil.Table) -> None:
    shown = spark.sql("SHOW PARTITIONS frazil.shop.orders").select("partition.day", "record_count")
    assert sorted((str(day), rows) for day, rows in shown.collect()) == [
        ("2024-01-01", 30),
        ("2024-01-02", 30),
        ("2024-01-03", 30),
    ]


def test_rows_tell_their_partition(spark: Any, table: frazil.Table) -> None:
    days = "SELECT _partition.day, count(id) FROM frazil.shop.orders GROUP BY 1 ORDER BY 1"
    assert [(str(day), rows) for day, rows in spark.sql(days).collect()] == [
        ("2024-01-01", 30),
        ("2024-01-02", 30),
        ("2024-01-03", 30),
    ]
    whole = "SELECT id, _partition FROM frazil.shop.orders WHERE id = 31"
    found = spark.sql(whole).first()
    assert (found.id, found._partition.asDict()) == (31, {"day": row(31)[0]})


def test_rows_are_counted_without_reading_files(spark: Any, table: frazil.Table) -> None:
    query = "SELECT count(*), count(1) AS again FROM frazil.shop.orders"
    plan = planned(spark, query)
    assert "LocalTableScan" in plan
    assert "of 3 files" not in plan
    assert tuple(spark.sql(query).first()) == (90, 90)
    spark.sql("DELETE FROM frazil.shop.orders WHERE id IN (1, 2, 40)")
    assert tuple(spark.sql(query).first()) == (87, 87)
    some = "SELECT count(*) FROM frazil.shop.orders WHERE id < 10"
    assert spark.sql(some).first()[0] == 8


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("day = date'2024-01-02'", 1),
        ("day > date'2024-01-01' AND id < 1000", 2),
        ("day IN (date'2024-01-01', date'2023-01-01')", 1),
        ("day = date'2024-01-02' OR day = date'2024-01-03'", 2),
        ("NOT (day < date'2024-01-03')", 1),
        ("id = 5000", 0),
        ("upper(country) = 'DE'", 3),
        ("price < 0.5", 1),
        ("price > 1000", 0),
    ],
)
def test_a_query_reads_only_files_its_condition_leaves(
    spark: Any, table: frazil.Table, condition: str, files: int
) -> None:
    assert f"({files} of 3 files; " in planned(spark, f"{ONE} WHERE {condition}")
    every = {each["id"] for each in table.scan().to_pylist()}
    plain = spark.createDataFrame(orders(range(90))).filter(condition)
    found = {each["id"] for each in spark.sql(f"{ONE} WHERE {condition}").collect()}
    assert found == {each["id"] for each in plain.collect()} <= every


def test_each_side_of_a_self_join_is_pruned_by_itself(spark: Any, table: frazil.Table) -> None:
    query = (
        "SELECT a.id, b.id FROM frazil.shop.orders a JOIN frazil.shop.orders b ON a.id + 1 = b.id "
        "WHERE a.day = date'2024-01-01' AND b.day = date'2024-01-02' AND a.id < 7"
    )
    assert planned(spark, query).count("(1 of 3 files; ") >= 2
    assert sorted(tuple(each) for each in spark.sql(query).collect()) == [(0, 1), (3, 4), (6, 7)]


def test_a_frame_is_pruned_by_filters_added_later_and_reads_all_without_them(
    spark: Any, table: frazil.Table
) -> None:
    frame = spark.table("frazil.shop.orders")
    assert frame.filter("id = 3").count() == 1
    assert frame.count() == 90
    assert frame.filter("id = 3").union(frame.filter("id = 5")).count() == 2


def test_dynamic_partition_pruning_reads_one_partition(spark: Any, table: frazil.Table) -> None:
    spark.createDataFrame([("x",)], "tag string").selectExpr(
        "tag", "date'2024-01-02' AS day"
    ).createOrReplaceTempView("days")
    query = (
        "SELECT count(*) AS n FROM frazil.shop.orders o JOIN days d ON o.day = d.day "
        "WHERE d.tag = 'x'"
    )
    assert spark.sql(query).first()["n"] == 30


def test_delete_with_a_subquery_deletes_what_it_names(spark: Any, table: frazil.Table) -> None:
    spark.range(4).createOrReplaceTempView("gone")
    spark.sql("DELETE FROM frazil.shop.orders WHERE id IN (SELECT id FROM gone)")
    assert sorted(content(table)) == list(range(4, 90))
    spark.sql("DELETE FROM frazil.shop.orders WHERE id = (SELECT max(id) + 1 FROM gone)")
    assert sorted(content(table)) == list(range(5, 90))


def test_delete_of_a_partition_writes_no_vector(spark: Any, table: frazil.Table) -> None:
    spark.sql("DELETE FROM frazil.shop.orders WHERE day = date'2024-01-02'")
    assert sorted(content(table)) == [i for i in range(90) if i % 3 != 1]
    assert table.refresh().inspect.files.column("deletion_vector").null_count == 2


def test_delete_where_nothing_matches_makes_no_snapshot(spark: Any, table: frazil.Table) -> None:
    spark.sql("DELETE FROM frazil.shop.orders WHERE false")
    spark.sql("DELETE FROM frazil.shop.orders WHERE id = 12345")
    assert len(table.refresh().snapshots()) == 1
    assert len(content(table)) == 90


def test_update_and_merge_keep_row_ids(spark: Any, table: frazil.Table) -> None:
    before = {e["id"]: e["_row_id"] for e in table.scan(columns=["id", "_row_id"]).to_pylist()}
    spark.sql("UPDATE frazil.shop.orders SET price = price * 2, country = 'FR' WHERE id < 3")
    spark.sql(
        "MERGE INTO frazil.shop.orders t "
        "USING (SELECT id, id * 100D AS price FROM range(88, 92)) s "
        "ON t.id = s.id WHEN MATCHED AND s.id = 88 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET price = s.price "
        "WHEN NOT MATCHED THEN INSERT (id, price) VALUES (s.id, s.price)"
    )
    found = content(table)
    assert found[2] == (row(2)[0], "FR", 4.0)
    assert 88 not in found
    assert found[89] == (*row(89)[:2], 8900.0)
    assert found[91] == (None, None, 9100.0)
    assert len(found) == 91
    after = {e["id"]: e["_row_id"] for e in table.scan(columns=["id", "_row_id"]).to_pylist()}
    assert all(after[i] == before[i] for i in before if i in after)
    assert len(set(after.values())) == len(after)


def test_a_merge_that_meets_a_row_twice_is_refused(spark: Any, table: frazil.Table) -> None:
    from pyspark.errors import IllegalArgumentException

    with pytest.raises(IllegalArgumentException, match="that another source row matched"):
        spark.sql(
            "MERGE INTO frazil.shop.orders t USING (SELECT 3L AS id FROM range(2)) s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET price = 1"
        )
    assert {price for _, _, price in content(table).values()} != {1.0}


def test_explain_changes_nothing(spark: Any, table: frazil.Table) -> None:
    spark.sql("EXPLAIN DELETE FROM frazil.shop.orders WHERE id = 3").collect()
    assert len(content(table)) == 90


def test_time_zone_of_the_session_counts(spark: Any, catalog: frazil.Catalog) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    frame = spark.sql("SELECT 1L AS id, timestamp'2024-01-01 02:00:00' AS ts")
    made = catalog.create_table("shop.times", frazil.spark.table_schema(frame.schema))
    frazil.spark.append(made, frame)
    frazil.spark.register(spark, catalog)
    text = "ts < '2024-01-01 00:00:00'"
    assert spark.table("frazil.shop.times").filter(text).count() == 0
    frazil.spark.delete(made.refresh(), text)
    assert made.refresh().scan().count() == 1
    frazil.spark.delete(made, "ts < '2024-01-01 03:00:00'")
    assert made.refresh().scan().count() == 0


def test_refusals_show_the_message_first(spark: Any, table: frazil.Table) -> None:
    with pytest.raises(Exception, match=r"^shop\.orders: no snapshot 17"):
        spark.sql(f"{ONE} VERSION AS OF 17").collect()


def test_writes_of_frames(spark: Any, table: frazil.Table) -> None:
    more = spark.createDataFrame(orders(range(90, 93)))
    more.writeTo("frazil.shop.orders").append()
    assert len(content(table)) == 93
    more.writeTo("frazil.shop.copy").create()
    more.write.mode("append").saveAsTable("frazil.shop.copy")
    assert spark.table("frazil.shop.copy").count() == 6
    more.limit(1).writeTo("frazil.shop.copy").overwritePartitions()
    more.limit(2).writeTo("frazil.shop.copy").createOrReplace()
    assert spark.table("frazil.shop.copy").count() == 2
    assert spark.catalog.tableExists("frazil.shop.copy")


def test_a_failed_create_as_select_leaves_no_table(spark: Any, table: frazil.Table) -> None:
    with pytest.raises(Exception, match=r"(?i)divide"):
        spark.sql(
            "CREATE TABLE frazil.shop.broken AS SELECT 1 / (id - 3) AS x FROM frazil.shop.orders"
        )
    assert [each.name for each in spark.catalog.listTables("frazil.shop")] == ["orders"]
