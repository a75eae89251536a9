"""Stock Spark with Iceberg's runtime reads and writes served tables: every kind of statement, and
native commits that land while Spark is at work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.commit import loop
from frazil.serve.rest import commits
from frazil.table import Catalog
from tests.interop.serve.spark_client import Spark, SparkFailed, check, make

pytestmark = [pytest.mark.java, pytest.mark.peers, pytest.mark.xdist_group("served-spark")]


@pytest.mark.parametrize(
    ("mode", "version"), [("merge-on-read", 3), ("copy-on-write", 3), ("merge-on-read", 2)]
)
def test_rows_are_changed_by_every_statement(
    catalog: Catalog, spark: Spark, mode: str, version: int
) -> None:
    name = f"rows_{mode.replace('-', '_')}_{version}"
    make(spark, name, mode=mode, version=version)
    check(catalog, spark, name, 1, 2, 3, 4)
    spark.sql(f"DELETE FROM shop.{name} WHERE id = 1")
    check(catalog, spark, name, 2, 3, 4)
    spark.sql(f"UPDATE shop.{name} SET id = 20 WHERE id = 2")
    check(catalog, spark, name, 3, 4, 20)
    spark.sql(
        f"MERGE INTO shop.{name} t USING (SELECT * FROM VALUES (3, 'fr'), (9, 'it') s(id, c)) s "
        "ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, country) "
        "VALUES (s.id, s.c)"
    )
    check(catalog, spark, name, 4, 9, 20)
    spark.sql(f"INSERT OVERWRITE shop.{name} PARTITION (country = 'it') SELECT 10")
    check(catalog, spark, name, 4, 10, 20)
    spark.sql(f"CALL lake.system.rewrite_data_files(table => 'shop.{name}')")
    check(catalog, spark, name, 4, 10, 20)
    spark.sql(f"CALL lake.system.rewrite_manifests('shop.{name}')")
    check(catalog, spark, name, 4, 10, 20)
    if version == 2:
        spark.sql(f"CALL lake.system.rewrite_position_delete_files('shop.{name}')")
        check(catalog, spark, name, 4, 10, 20)
    spark.sql("SET spark.sql.sources.partitionOverwriteMode=dynamic")
    spark.sql(f"INSERT OVERWRITE shop.{name} VALUES (11, 'it'), (12, 'es')")
    spark.sql("RESET spark.sql.sources.partitionOverwriteMode")
    check(catalog, spark, name, 4, 11, 12, 20)
    spark.sql(f"INSERT OVERWRITE shop.{name} VALUES (13, 'it')")
    check(catalog, spark, name, 13)
    spark.sql(f"TRUNCATE TABLE shop.{name}")
    check(catalog, spark, name)


def test_tables_are_made_and_replaced_by_queries(catalog: Catalog, spark: Spark) -> None:
    spark.sql("CREATE TABLE shop.made USING iceberg AS SELECT 1L AS id, 'x' AS country")
    check(catalog, spark, "made", 1)
    spark.sql("CREATE OR REPLACE TABLE shop.made USING iceberg AS SELECT id FROM range(5, 8)")
    check(catalog, spark, "made", 5, 6, 7)
    assert spark.sql("DESCRIBE shop.made")[0][0] == "id"


def test_time_travel_branches_and_tags(catalog: Catalog, spark: Spark) -> None:
    make(spark, "travel")
    spark.sql("ALTER TABLE shop.travel CREATE TAG start")
    spark.sql("ALTER TABLE shop.travel CREATE BRANCH audit")
    spark.sql("INSERT INTO shop.travel.branch_audit VALUES (5, 'it')")
    assert len(spark.sql("SELECT * FROM shop.travel VERSION AS OF 'audit'")) == 5
    check(catalog, spark, "travel", 1, 2, 3, 4)
    spark.sql("CALL lake.system.fast_forward('shop.travel', 'main', 'audit')")
    check(catalog, spark, "travel", 1, 2, 3, 4, 5)
    assert len(spark.sql("SELECT * FROM shop.travel VERSION AS OF 'start'")) == 4
    assert len(spark.sql("SELECT * FROM planned.shop.travel VERSION AS OF 'start'")) == 4
    (first,) = spark.sql(
        "SELECT min(committed_at), min_by(snapshot_id, committed_at) FROM shop.travel.snapshots"
    )
    assert len(spark.sql(f"SELECT * FROM shop.travel VERSION AS OF {first[1]}")) == 4
    assert len(spark.sql(f"SELECT * FROM shop.travel TIMESTAMP AS OF '{first[0]}'")) == 4
    spark.sql(f"CALL lake.system.rollback_to_snapshot('shop.travel', {first[1]})")
    check(catalog, spark, "travel", 1, 2, 3, 4)


def test_a_staged_snapshot_is_picked_later(catalog: Catalog, spark: Spark) -> None:
    make(spark, "staged")
    spark.sql("ALTER TABLE shop.staged SET TBLPROPERTIES ('write.wap.enabled'='true')")
    spark.sql("SET spark.wap.id=w1")
    spark.sql("INSERT INTO shop.staged VALUES (5, 'it')")
    spark.sql("RESET spark.wap.id")
    check(catalog, spark, "staged", 1, 2, 3, 4)
    ((snapshot,),) = spark.sql(
        "SELECT snapshot_id FROM shop.staged.snapshots WHERE summary['wap.id'] = 'w1'"
    )
    spark.sql(f"CALL lake.system.cherrypick_snapshot('shop.staged', {snapshot})")
    check(catalog, spark, "staged", 1, 2, 3, 4, 5)


def test_schemas_partitions_and_orders_evolve(catalog: Catalog, spark: Spark) -> None:
    make(spark, "evolved")
    spark.sql("ALTER TABLE shop.evolved ADD COLUMN price DOUBLE")
    spark.sql("ALTER TABLE shop.evolved ADD PARTITION FIELD bucket(4, id)")
    spark.sql("ALTER TABLE shop.evolved WRITE ORDERED BY id")
    spark.sql("INSERT INTO shop.evolved VALUES (5, 'it', 1.5)")
    spark.sql("ALTER TABLE shop.evolved RENAME COLUMN price TO cost")
    check(catalog, spark, "evolved", 1, 2, 3, 4, 5)
    native = catalog["shop.evolved"]
    assert [field.name for field in native.schema.fields] == ["id", "country", "cost"]
    assert len(native.metadata.partition_specs) == 2


def test_a_write_goes_to_the_branch_that_is_set(catalog: Catalog, spark: Spark) -> None:
    make(spark, "audited")
    spark.sql("ALTER TABLE shop.audited SET TBLPROPERTIES ('write.wap.enabled'='true')")
    spark.sql("ALTER TABLE shop.audited CREATE BRANCH audit")
    spark.sql("SET spark.wap.branch=audit")
    spark.sql("INSERT INTO shop.audited VALUES (5, 'it')")
    spark.sql("RESET spark.wap.branch")
    check(catalog, spark, "audited", 1, 2, 3, 4)
    spark.sql("CALL lake.system.fast_forward('shop.audited', 'main', 'audit')")
    check(catalog, spark, "audited", 1, 2, 3, 4, 5)


def test_filters_prune_wherever_the_scan_is_planned(catalog: Catalog, spark: Spark) -> None:
    make(spark, "filtered")
    for where, expected in (
        ("country = 'de'", [1, 2]),
        ("country <> 'de'", [3, 4]),
        ("id IN (1, 4) OR country LIKE 'f%'", [1, 3, 4]),
        ("NOT (id > 2)", [1, 2]),
        ("country IS NULL", []),
        ("lake.system.bucket(4, id) IS NOT NULL AND id = 3", [3]),
    ):
        for lake in ("lake", "planned"):
            rows = spark.sql(f"SELECT id FROM {lake}.shop.filtered WHERE {where} ORDER BY id")
            assert [row[0] for row in rows] == expected, (lake, where)
    row_ids = [
        spark.sql(f"SELECT id, _row_id FROM {lake}.shop.filtered ORDER BY id")
        for lake in ("lake", "planned")
    ]
    assert row_ids[0] == row_ids[1]
    assert len({row[1] for row in row_ids[0]}) == 4


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_rows_keep_their_ids_when_they_are_rewritten(
    catalog: Catalog, spark: Spark, mode: str
) -> None:
    name = f"kept_ids_{mode[:4]}"
    make(spark, name, mode=mode)
    before = spark.sql(f"SELECT _row_id FROM shop.{name} WHERE id IN (1, 3) ORDER BY id")
    spark.sql(f"DELETE FROM shop.{name} WHERE id = 2")
    spark.sql(f"UPDATE shop.{name} SET id = 30 WHERE id = 3")
    after = spark.sql(f"SELECT _row_id FROM shop.{name} WHERE id IN (1, 30) ORDER BY id")
    assert after[0] == before[0]
    if mode == "copy-on-write":
        assert after == before
    check(catalog, spark, name, 1, 4, 30)
    native = catalog[f"shop.{name}"].scan(columns=["id", "_row_id"]).to_arrow().to_pylist()
    shown = spark.sql(f"SELECT id, _row_id FROM shop.{name}")
    assert sorted((row["id"], row["_row_id"]) for row in native) == sorted(map(tuple, shown))


def test_nested_columns_and_an_upgrade(catalog: Catalog, spark: Spark) -> None:
    spark.sql(
        "CREATE TABLE shop.nested (id BIGINT, at STRUCT<x: INT, tags: ARRAY<STRING>>, "
        "seen MAP<STRING, DATE>) USING iceberg TBLPROPERTIES ('format-version'='2')"
    )
    spark.sql(
        "INSERT INTO shop.nested VALUES (1, named_struct('x', 7, 'tags', array('a', 'b')), "
        "map('k', DATE '2024-01-15'))"
    )
    spark.sql("ALTER TABLE shop.nested ADD COLUMN at.y DOUBLE AFTER x")
    spark.sql("ALTER TABLE shop.nested SET TBLPROPERTIES ('format-version'='3')")
    spark.sql(
        "INSERT INTO shop.nested VALUES (2, named_struct('x', 8, 'y', 0.5D, 'tags', array()), "
        "map())"
    )
    spark.sql("DELETE FROM shop.nested WHERE at.x = 9")
    check(catalog, spark, "nested", 1, 2)
    assert spark.sql(
        "SELECT at.x, at.y, get(at.tags, 1), seen['k'] FROM shop.nested ORDER BY id"
    ) == [
        [7, None, "b", "2024-01-15"],
        [8, 0.5, None, None],
    ]
    first = catalog["shop.nested"].scan("id = 1").to_arrow().to_pylist()[0]
    assert first["at"] == {"x": 7, "y": None, "tags": ["a", "b"]}


def test_streams_and_increments(catalog: Catalog, spark: Spark, tmp_path: Path) -> None:
    make(spark, "source")
    spark.sql("CREATE TABLE shop.target (id BIGINT, country STRING) USING iceberg")
    start = int(catalog["shop.source"].current_snapshot().snapshot_id)  # type: ignore[union-attr]
    places = ["lake.shop.source", "lake.shop.target", str(tmp_path)]
    assert spark.ask(stream=places) == [[4]]
    check(catalog, spark, "target", 1, 2, 3, 4)
    catalog["shop.source"].append(pa.table({"id": [5], "country": ["it"]}))
    spark.sql("INSERT INTO shop.source VALUES (6, 'es')")
    assert spark.ask(stream=places) == [[2]]
    check(catalog, spark, "target", 1, 2, 3, 4, 5, 6)
    last = int(catalog["shop.source"].current_snapshot().snapshot_id)  # type: ignore[union-attr]
    rows = spark.ask(between=["lake.shop.source", str(start), str(last)])
    assert rows == [[5, "it"], [6, "es"]]


def test_metadata_tables_tell_what_is_there(catalog: Catalog, spark: Spark) -> None:
    make(spark, "told")
    catalog["shop.told"].append(pa.table({"id": [5], "country": ["it"]}))
    spark.sql("REFRESH TABLE shop.told")
    counts = {
        name: len(spark.sql(f"SELECT * FROM shop.told.{name}"))
        for name in ("files", "entries", "partitions", "snapshots", "history", "refs")
    }
    assert counts == {
        "files": 3,
        "entries": 3,
        "partitions": 3,
        "snapshots": 2,
        "history": 2,
        "refs": 1,
    }
    ((files,),) = spark.sql(
        "SELECT sum(added_data_files_count + existing_data_files_count) FROM shop.told.manifests"
    )
    assert files == 3
    assert spark.sql("SELECT operation FROM shop.told.snapshots") == [["append"], ["append"]]


def test_statistics_are_kept(catalog: Catalog, spark: Spark) -> None:
    make(spark, "counted")
    spark.sql("CALL lake.system.compute_table_stats(table => 'shop.counted')")
    (found,) = catalog["shop.counted"].metadata.statistics
    tip = catalog["shop.counted"].current_snapshot()
    assert tip is not None
    assert found["snapshot-id"] == int(tip.snapshot_id)
    check(catalog, spark, "counted", 1, 2, 3, 4)


def test_views_are_made_replaced_and_dropped(catalog: Catalog, spark: Spark) -> None:
    make(spark, "seen")
    spark.sql("CREATE VIEW lake.shop.germans AS SELECT id FROM lake.shop.seen WHERE country = 'de'")
    assert spark.sql("SELECT count(*) FROM lake.shop.germans") == [[2]]
    spark.sql("CREATE OR REPLACE VIEW lake.shop.germans AS SELECT id FROM lake.shop.seen")
    assert spark.sql("SELECT count(*) FROM lake.shop.germans") == [[4]]
    spark.sql("DROP VIEW lake.shop.germans")
    assert spark.sql("SHOW VIEWS IN lake.shop") == []


@pytest.mark.parametrize("shredded", ["false", "true"])
def test_variants_go_both_ways(catalog: Catalog, spark: Spark, shredded: str) -> None:
    name = f"variants_{shredded}"
    spark.sql(
        f"CREATE TABLE shop.{name} (id BIGINT, v VARIANT) USING iceberg TBLPROPERTIES "
        f"('format-version'='3', 'write.parquet.shred-variants'='{shredded}', "
        "'read.parquet.vectorization.enabled'='false')"  # fails on what Iceberg itself shredded
    )
    document = "to_json(named_struct('n', id, 't', array('x')))"
    spark.sql(f"INSERT INTO shop.{name} SELECT id, parse_json({document}) FROM range(1, 4)")
    table = catalog.load_table(f"shop.{name}")
    written = {id: {"n": id, "t": ["x"]} for id in (1, 2, 3)}
    assert {row["id"]: row["v"] for row in table.scan().to_pylist()} == written
    table.append([{"id": 4, "v": {"n": 4.5, "d": [None]}}, {"id": 5, "v": None}])
    catalog.sql(f"UPDATE shop.{name} SET id = 10 WHERE id = 1")
    spark.sql(f"REFRESH TABLE shop.{name}")
    found = spark.sql(f"SELECT id, to_json(v) FROM shop.{name} ORDER BY id")
    assert [(id, value and json.loads(value)) for id, value in found] == [
        (2, written[2]),
        (3, written[3]),
        (4, {"d": [None], "n": 4.5}),
        (5, None),
        (10, written[1]),
    ]
    assert spark.sql(f"SELECT id FROM shop.{name} WHERE try_variant_get(v, '$.n', 'int') = 3") == [
        [3]
    ]
    spark.sql(f"DELETE FROM shop.{name} WHERE id = 2")
    assert sorted(row["id"] for row in catalog.load_table(f"shop.{name}").scan()) == [3, 4, 5, 10]


def test_what_would_collect_files_is_refused(catalog: Catalog, spark: Spark) -> None:
    make(spark, "kept")
    for call in ("expire_snapshots", "remove_orphan_files"):
        with pytest.raises(SparkFailed, match=r"GC is disabled|gc.enabled"):
            spark.sql(f"CALL lake.system.{call}(table => 'shop.kept')")
    check(catalog, spark, "kept", 1, 2, 3, 4)


def test_native_tables_are_read_with_their_deletes(catalog: Catalog, spark: Spark) -> None:
    table = catalog.create_table("shop.native", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": list(range(100))}))
    table.delete("id >= 3")
    check(catalog, spark, "native", 0, 1, 2)
    table.append(pa.table({"id": [7]}))
    spark.sql("REFRESH TABLE shop.native")
    check(catalog, spark, "native", 0, 1, 2, 7)


# What lands natively between the moment Spark loads a table and its commit.


def append_elsewhere(table: Any) -> None:
    table.append(pa.table({"id": [50], "country": ["it"]}))


def append_matching(table: Any) -> None:
    table.append(pa.table({"id": [2], "country": ["de"]}))


def delete_in_the_same_file(table: Any) -> None:
    table.delete("id = 1")


def delete_the_same_row(table: Any) -> None:
    table.delete("id = 2")


def rewrite_its_file(table: Any) -> None:
    table.append(pa.table({"id": [7], "country": ["de"]}))
    table.compact(rewrite_all=True, min_input_files=1)


def append_to_the_partition(table: Any) -> None:
    table.append(pa.table({"id": [60], "country": ["de"]}))


@pytest.mark.parametrize(
    ("meanwhile", "statement", "expected"),
    [
        (append_elsewhere, "INSERT INTO {} VALUES (5, 'de')", [1, 2, 3, 4, 5, 50]),
        (append_elsewhere, "DELETE FROM {} WHERE country = 'de' AND id = 2", [1, 3, 4, 50]),
        (append_matching, "DELETE FROM {} WHERE country = 'de' AND id = 2", None),
        (delete_in_the_same_file, "DELETE FROM {} WHERE country = 'de' AND id = 2", None),
        (delete_the_same_row, "UPDATE {} SET id = 20 WHERE country = 'de' AND id = 2", None),
        (rewrite_its_file, "DELETE FROM {} WHERE country = 'de' AND id = 2", None),
        (
            append_to_the_partition,
            "INSERT OVERWRITE {} PARTITION (country = 'de') SELECT 8",
            [3, 4, 8],
        ),
    ],
)
def test_a_native_commit_meanwhile_is_seen_or_refused(
    catalog: Catalog,
    spark: Spark,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: Callable[[Any], None],
    statement: str,
    expected: list[int] | None,
) -> None:
    name = f"race_{meanwhile.__name__}_{statement[:6].lower()}"
    make(spark, name)
    original, pending = loop.commit_tables, [meanwhile]

    def racing(*arguments: Any) -> Any:
        while pending:
            pending.pop()(catalog[f"shop.{name}"])
        return original(*arguments)

    monkeypatch.setattr(commits, "commit_tables", racing)
    sql = statement.format(f"shop.{name}")
    if expected is not None:
        spark.sql(sql)
        check(catalog, spark, name, *expected)
        return
    with pytest.raises(SparkFailed, match=r"ValidationException|[Cc]onflict|CommitFailed"):
        spark.sql(sql)
    monkeypatch.undo()
    native = sorted(catalog[f"shop.{name}"].scan().to_arrow()["id"].to_pylist())
    check(catalog, spark, name, *native)


def test_a_table_of_iceberg_with_shredded_variants_is_upgraded(
    catalog: Catalog, spark: Spark, tmp_path: Path
) -> None:
    """Iceberg's own v3 metadata, with its bounds of shredded fields and its deletion vectors."""
    spark.sql("SET spark.sql.catalog.plain=org.apache.iceberg.spark.SparkCatalog")
    spark.sql("SET spark.sql.catalog.plain.type=hadoop")
    spark.sql(f"SET spark.sql.catalog.plain.warehouse={tmp_path.as_uri()}")
    spark.sql(
        "CREATE TABLE plain.shop.old (id BIGINT, v VARIANT) USING iceberg TBLPROPERTIES ("
        "'format-version'='3', 'write.parquet.shred-variants'='true', "
        "'read.parquet.vectorization.enabled'='false', "
        "'write.delete.mode'='merge-on-read', 'write.distribution-mode'='none')"
    )
    for first in (0, 10):
        document = "to_json(named_struct('n', id, 'name', concat('n', id)))"
        spark.sql(
            f"INSERT INTO plain.shop.old SELECT id, parse_json({document}) "
            f"FROM range({first}, {first + 10}, 1, 1)"
        )
    spark.sql("DELETE FROM plain.shop.old WHERE id = 13")
    (newest,) = (tmp_path / "shop" / "old" / "metadata").glob("v4.metadata.json")
    table = catalog.register_table("shop.taken", newest.as_uri())
    expected = {id: {"n": id, "name": f"n{id}"} for id in range(20) if id != 13}
    files = [*(tmp_path / "shop" / "old" / "data").glob("*.parquet")]
    assert len(files) == 2
    assert all("typed_value" in str(pq.ParquetFile(file).schema) for file in files)
    for _ in range(2):
        assert {row["id"]: row["v"] for row in table.scan()} == expected
        assert table.scan("v.n::BIGINT >= 10").plan().files.num_rows == 1
        assert table.scan("v.name::VARCHAR = 'zzz'").plan().files.num_rows == 0
        if table.metadata.format_version == 3:
            table.upgrade()
    assert table.metadata.format_version == 4
