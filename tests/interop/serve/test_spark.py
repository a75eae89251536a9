"""Stock Spark with Iceberg's runtime reads and writes served tables: every kind of statement, and
native commits that land while Spark is at work."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil import serve
from frazil.commit import together
from frazil.serve import commits
from frazil.table import Catalog
from tests.support.java import ICEBERG_RUNTIME, maven_jar
from tests.support.project import ROOT
from tests.support.venvs import ICEBERG_SPARK

pytestmark = [pytest.mark.java, pytest.mark.peers]
SCRIPT = ROOT / "tests" / "interop" / "serve" / "spark_session.py"


class SparkFailed(Exception):
    """Spark's own message."""


class Spark:
    """A Spark process that runs one statement after the other."""

    def __init__(self, uri: str) -> None:
        python = str(ICEBERG_SPARK.ready().python)
        command = [python, str(SCRIPT), uri, str(maven_jar(ICEBERG_RUNTIME))]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._answer()

    def sql(self, text: str) -> list[list[Any]]:
        """Run a statement; the rows it gives."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"sql": text}) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        if "error" in answer:
            raise SparkFailed(answer["error"])
        rows: list[list[Any]] = answer["rows"]
        return rows

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        raise SparkFailed("Spark has ended")


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with frazil.connect(tmp_path_factory.mktemp("served")) as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture(scope="module")
def spark(catalog: Catalog) -> Iterator[Spark]:
    with serve.start(catalog) as server:
        started = Spark(server.uri)
        yield started
        started.close()


def ids(spark: Spark, name: str) -> list[int]:
    return [row[0] for row in spark.sql(f"SELECT id FROM shop.{name} ORDER BY id")]


def check(catalog: Catalog, spark: Spark, name: str, *expected: int) -> None:
    """Spark's rows, native rows and the expected ones are the same; the tree is sound."""
    native = catalog[f"shop.{name}"]
    assert ids(spark, name) == sorted(expected)
    assert sorted(native.scan().to_arrow()["id"].to_pylist()) == sorted(expected)
    report = native.check(deep=True)
    assert not report.problems, str(report)


def make(spark: Spark, name: str, *, mode: str = "merge-on-read", version: int = 3) -> None:
    modes = ", ".join(f"'write.{v}.mode'='{mode}'" for v in ("delete", "update", "merge"))
    spark.sql(
        f"CREATE TABLE shop.{name} (id BIGINT, country STRING) USING iceberg "
        f"PARTITIONED BY (country) TBLPROPERTIES ('format-version'='{version}', {modes})"
    )
    spark.sql(f"INSERT INTO shop.{name} VALUES (1, 'de'), (2, 'de'), (3, 'fr'), (4, 'fr')")


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
    (first,) = spark.sql(
        "SELECT min(committed_at), min_by(snapshot_id, committed_at) FROM shop.travel.snapshots"
    )
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


@pytest.mark.parametrize(
    ("meanwhile", "statement", "expected"),
    [
        (append_elsewhere, "INSERT INTO {} VALUES (5, 'de')", [1, 2, 3, 4, 5, 50]),
        (append_elsewhere, "DELETE FROM {} WHERE country = 'de' AND id = 2", [1, 3, 4, 50]),
        (append_matching, "DELETE FROM {} WHERE country = 'de' AND id = 2", None),
        (delete_in_the_same_file, "DELETE FROM {} WHERE country = 'de' AND id = 2", None),
        (delete_the_same_row, "UPDATE {} SET id = 20 WHERE country = 'de' AND id = 2", None),
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
    original, pending = together.commit_together, [meanwhile]

    def racing(*arguments: Any) -> Any:
        while pending:
            pending.pop()(catalog[f"shop.{name}"])
        return original(*arguments)

    monkeypatch.setattr(commits, "commit_together", racing)
    sql = statement.format(f"shop.{name}")
    if expected is not None:
        spark.sql(sql)
        check(catalog, spark, name, *expected)
        return
    with pytest.raises(SparkFailed, match=r"ValidationException|conflict"):
        spark.sql(sql)
    monkeypatch.undo()
    native = sorted(catalog[f"shop.{name}"].scan().to_arrow()["id"].to_pylist())
    check(catalog, spark, name, *native)
