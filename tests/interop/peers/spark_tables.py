"""Tables that Iceberg Java writes through Spark SQL. Runs in its own virtual environment.

    python spark_tables.py <warehouse> <jars, comma separated> <report.json>

One Spark for all of them. The report gives, per table, the format version, what is peculiar about
it, and how many rows Spark itself counts at the end.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

CATALOG = "peer"
MERGE_ON_READ = {f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")}
ONE_FILE = {"write.distribution-mode": "none"}


class Spark:
    """SQL against the catalog, and the list of tables made."""

    def __init__(self, warehouse: Path, jars: str) -> None:
        catalog = f"spark.sql.catalog.{CATALOG}"
        extensions = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        settings = {
            "spark.jars": jars,
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.extensions": extensions,
            "spark.sql.defaultCatalog": CATALOG,
            "spark.sql.warehouse.dir": str(warehouse / "spark-warehouse"),
            "spark.driver.extraJavaOptions": f"-Dderby.system.home={warehouse}",
            "spark.log.level": "ERROR",
            catalog: "org.apache.iceberg.spark.SparkCatalog",
            f"{catalog}.type": "jdbc",
            f"{catalog}.uri": f"jdbc:sqlite:{warehouse / 'catalog.db'}",
            f"{catalog}.clients": "1",
            f"{catalog}.jdbc.schema-version": "V1",
            f"{catalog}.warehouse": warehouse.as_uri(),
        }
        builder = SparkSession.builder.master("local[2]").appName("peer tables")
        for key, value in settings.items():
            builder = builder.config(key, value)
        self.session = builder.getOrCreate()
        self.tables: list[dict[str, object]] = []
        self.run("CREATE NAMESPACE IF NOT EXISTS spark")

    def run(self, statement: str) -> None:
        """Run one statement to its end."""
        self.session.sql(statement).collect()

    def create(
        self,
        name: str,
        version: int,
        columns: str,
        *,
        notes: str,
        partitioned_by: str = "",
        properties: dict[str, str] | None = None,
    ) -> str:
        """A new table; returns its full name."""
        options = {"format-version": str(version), **ONE_FILE, **(properties or {})}
        listed = ", ".join(f"'{key}'='{value}'" for key, value in options.items())
        partitioning = f"PARTITIONED BY ({partitioned_by})" if partitioned_by else ""
        self.run(
            f"CREATE TABLE spark.{name} ({columns}) USING iceberg {partitioning} "
            f"TBLPROPERTIES ({listed})"
        )
        self.tables.append({"name": name, "notes": notes})
        return f"spark.{name}"

    def report(self) -> list[dict[str, object]]:
        """Every table with what Spark says of its end state."""
        for table in self.tables:
            name = f"spark.{table['name']}"
            table["row_count"] = self.session.table(name).count()
        return self.tables


def rows(start: int, count: int) -> str:
    """VALUES of (id, category, amount, ts)."""
    values = [
        f"({id}, {_category(id)}, {id * 1.5}D, timestamp '2024-01-0{1 + id % 9} 0{id % 10}:30:00')"
        for id in range(start, start + count)
    ]
    return "VALUES " + ", ".join(values)


def _category(id: int) -> str:
    return "NULL" if id % 7 == 6 else f"'c{id % 3}'"


COLUMNS = "id bigint, category string, amount double, ts timestamp"


def changes(spark: Spark, table: str) -> None:
    """Appends, then a delete, an update and a merge."""
    spark.run(f"INSERT INTO {table} {rows(0, 12)}")
    spark.run(f"INSERT INTO {table} {rows(12, 12)}")
    spark.run(f"DELETE FROM {table} WHERE id IN (1, 5, 13)")
    spark.run(f"UPDATE {table} SET amount = amount + 100 WHERE id % 4 = 2")
    spark.run(
        f"MERGE INTO {table} t "
        f"USING (SELECT * FROM {rows(20, 8)} AS s(id, category, amount, ts)) s "
        "ON t.id = s.id "
        "WHEN MATCHED AND s.id = 21 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET t.amount = -s.amount "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    spark.run(f"DELETE FROM {table} WHERE id IN (0, 14, 26)")


def appends_and_overwrites(spark: Spark) -> None:
    table = spark.create("v1_appends", 1, COLUMNS, notes="v1; appends, then an overwrite of all")
    spark.run(f"INSERT INTO {table} {rows(0, 5)}")
    spark.run(f"INSERT INTO {table} {rows(5, 5)}")
    spark.run(f"INSERT OVERWRITE {table} {rows(100, 4)}")
    table = spark.create(
        "v1_partitioned",
        1,
        COLUMNS,
        partitioned_by="days(ts), bucket(4, id), category",
        notes="v1; day, bucket and identity; a partition deleted by metadata alone",
    )
    spark.run(f"INSERT INTO {table} {rows(0, 10)}")
    spark.run(f"INSERT INTO {table} {rows(10, 6)}")
    spark.run(f"DELETE FROM {table} WHERE category = 'c1'")
    spark.create("v2_empty", 2, COLUMNS, notes="v2; no snapshot at all")
    table = spark.create("v2_emptied", 2, COLUMNS, notes="v2; every row deleted in the end")
    spark.run(f"INSERT INTO {table} {rows(0, 3)}")
    spark.run(f"DELETE FROM {table}")
    table = spark.create(
        "v2_many_manifests",
        2,
        COLUMNS,
        partitioned_by="truncate(1, category)",
        properties={"commit.manifest-merge.enabled": "false"},
        notes="v2; one manifest per append, never merged; truncate partition",
    )
    for start in range(0, 20, 4):
        spark.run(f"INSERT INTO {table} {rows(start, 4)}")


def copy_on_write(spark: Spark) -> None:
    for version in (2, 3, 4):
        table = spark.create(
            f"v{version}_cow",
            version,
            COLUMNS,
            partitioned_by="category" if version != 3 else "",
            notes=f"v{version}; copy-on-write delete, update and merge",
        )
        changes(spark, table)


def merge_on_read(spark: Spark) -> None:
    for version in (2, 3, 4):
        kind = "position deletes" if version == 2 else "deletion vectors"
        table = spark.create(
            f"v{version}_mor",
            version,
            COLUMNS,
            partitioned_by="bucket(2, id)",
            properties=MERGE_ON_READ,
            notes=f"v{version}; merge-on-read delete, update and merge: {kind}",
        )
        changes(spark, table)
    table = spark.create(
        "v2_mor_partition_granularity",
        2,
        COLUMNS,
        properties={**MERGE_ON_READ, "write.delete.granularity": "partition"},
        notes="v2; position delete files that each cover many data files",
    )
    changes(spark, table)


def evolution(spark: Spark) -> None:
    for version in (2, 3, 4):
        table = spark.create(
            f"v{version}_evolved",
            version,
            "id int, name string, place struct<x: float, y: float>, gone string",
            properties=MERGE_ON_READ,
            notes=f"v{version}; columns added, renamed, dropped, widened, moved; specs replaced",
        )
        spark.run(
            f"INSERT INTO {table} VALUES (1, 'a', named_struct('x', 1F, 'y', 2F), 'g'), "
            "(2, 'b', NULL, 'h'), (3, NULL, named_struct('x', NULL, 'y', 4F), NULL)"
        )
        spark.run(f"ALTER TABLE {table} ADD COLUMN added decimal(9, 2) AFTER id")
        spark.run(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(4, id)")
        spark.run(f"INSERT INTO {table} VALUES (4, 1.25, 'd', named_struct('x', 1F, 'y', 2F), 'i')")
        spark.run(f"ALTER TABLE {table} RENAME COLUMN name TO title")
        spark.run(f"ALTER TABLE {table} ALTER COLUMN id TYPE bigint")
        spark.run(f"ALTER TABLE {table} ALTER COLUMN place.x TYPE double")
        spark.run(f"ALTER TABLE {table} ALTER COLUMN added TYPE decimal(18, 2)")
        spark.run(f"ALTER TABLE {table} DROP COLUMN gone")
        spark.run(f"ALTER TABLE {table} ADD COLUMN place.z int")
        spark.run(f"ALTER TABLE {table} REPLACE PARTITION FIELD bucket(4, id) WITH title")
        spark.run(
            f"INSERT INTO {table} VALUES "
            "(5000000000, 12345678.5, 'e', named_struct('x', 1.5D, 'y', 2F, 'z', 3)), "
            "(6, NULL, 'f', NULL)"
        )
        spark.run(f"DELETE FROM {table} WHERE id IN (2, 4)")
        spark.run(f"ALTER TABLE {table} DROP PARTITION FIELD title")
        spark.run(f"ALTER TABLE {table} ADD COLUMN gone int FIRST")
        spark.run(f"INSERT INTO {table} VALUES (9, 7, 0.5, 'g', NULL)")


def branches_and_tags(spark: Spark) -> None:
    for version in (2, 3):
        table = spark.create(
            f"v{version}_branches",
            version,
            COLUMNS,
            properties=MERGE_ON_READ,
            notes=f"v{version}; a tag, a branch with its own rows, a rollback",
        )
        spark.run(f"INSERT INTO {table} {rows(0, 6)}")
        spark.run(f"ALTER TABLE {table} CREATE TAG first")
        spark.run(f"ALTER TABLE {table} CREATE BRANCH side")
        spark.run(f"INSERT INTO {table}.branch_side {rows(50, 3)}")
        spark.run(f"DELETE FROM {table}.branch_side WHERE id = 2")
        spark.run(f"INSERT INTO {table} {rows(6, 6)}")
        spark.run(f"ALTER TABLE {table} CREATE TAG second")
        spark.run(f"INSERT INTO {table} {rows(12, 3)}")
        spark.run(f"CALL system.set_current_snapshot(table => '{table}', ref => 'second')")
        spark.run(f"DELETE FROM {table} WHERE id = 7")


def maintenance(spark: Spark) -> None:
    for version in (2, 3):
        table = spark.create(
            f"v{version}_rewritten",
            version,
            COLUMNS,
            partitioned_by="category",
            properties=MERGE_ON_READ,
            notes=f"v{version}; manifests and data files rewritten, oldest snapshots expired",
        )
        for start in range(0, 12, 4):
            spark.run(f"INSERT INTO {table} {rows(start, 4)}")
        spark.run(f"DELETE FROM {table} WHERE id IN (1, 2, 9)")
        spark.run(f"CALL system.rewrite_manifests(table => '{table}')")
        spark.run(
            f"CALL system.rewrite_data_files(table => '{table}', "
            "options => map('rewrite-all', 'true'), where => 'id < 8')"
        )
        spark.run(
            f"CALL system.expire_snapshots(table => '{table}', retain_last => 4, "
            "older_than => TIMESTAMP '2100-01-01 00:00:00')"
        )


def upgrades(spark: Spark) -> None:
    table = spark.create("v1_to_v3", 1, COLUMNS, notes="v1, then v2 with position deletes, then v3")
    spark.run(f"INSERT INTO {table} {rows(0, 8)}")
    modes = ", ".join(f"'{key}'='{value}'" for key, value in MERGE_ON_READ.items())
    spark.run(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version'='2', {modes})")
    spark.run(f"DELETE FROM {table} WHERE id IN (0, 5)")
    spark.run(f"INSERT INTO {table} {rows(8, 4)}")
    spark.run(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version'='3')")
    spark.run(f"INSERT INTO {table} {rows(12, 4)}")
    spark.run(f"DELETE FROM {table} WHERE id IN (1, 9, 13)")
    table = spark.create(
        "v3_to_v4", 3, COLUMNS, properties=MERGE_ON_READ, notes="v3 with DVs, then interim v4"
    )
    spark.run(f"INSERT INTO {table} {rows(0, 8)}")
    spark.run(f"DELETE FROM {table} WHERE id IN (0, 5)")
    spark.run(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version'='4')")
    spark.run(f"INSERT INTO {table} {rows(8, 4)}")
    spark.run(f"DELETE FROM {table} WHERE id IN (1, 9)")


def types(spark: Spark) -> None:
    columns = (
        "b boolean, i int, l bigint, f float, d double, day date, ts timestamp_ntz, tz timestamp, "
        "s string, bin binary, small decimal(4, 2), mid decimal(15, 3), wide decimal(38, 10), "
        "st struct<a: int, inner: struct<b: string, c: array<int>>>, arr array<string>, "
        "m map<string, struct<v: bigint>>, deep array<map<int, array<double>>>"
    )
    full = (
        "(true, 1, 2, 1.5F, -0.0D, date '2024-02-29', timestamp_ntz '1969-12-31 23:59:59.999999', "
        "timestamp '2024-01-01 00:00:00.000001', 'žluť', X'00FF', 12.34, -1.5, 1234567890123.5, "
        "named_struct('a', 1, 'inner', named_struct('b', 'x', 'c', array(1, NULL))), "
        "array('p', NULL, ''), map('k', named_struct('v', 5L), 'n', NULL), "
        "array(map(1, array(1.5D, NULL)), NULL))"
    )
    odd = (
        "(false, -2147483648, 9223372036854775807, float('NaN'), double('-Infinity'), "
        "date '0001-01-01', timestamp_ntz '9999-12-31 23:59:59', timestamp '1970-01-01 00:00:00', "
        "'', X'', -99.99, 0.001, -0.5, named_struct('a', NULL, 'inner', NULL), array(), map(), "
        "array())"
    )
    nothing = "(" + ", ".join(["NULL"] * 17) + ")"
    for version in (1, 3, 4):
        table = spark.create(
            f"v{version}_types", version, columns, notes=f"v{version}; Spark's types and nesting"
        )
        spark.run(f"INSERT INTO {table} VALUES {full}, {odd}, {nothing}")
        spark.run(f"INSERT INTO {table} VALUES {nothing}")


STEPS: tuple[Callable[[Spark], None], ...] = (
    appends_and_overwrites,
    copy_on_write,
    merge_on_read,
    evolution,
    branches_and_tags,
    maintenance,
    upgrades,
    types,
)


def main() -> None:
    """Make every table and write the report."""
    warehouse, jars, report = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    started = time.monotonic()
    spark = Spark(warehouse, jars)
    for step in STEPS:
        step(spark)
        print(f"{time.monotonic() - started:6.1f} s  {step.__name__}", flush=True)
    report.write_text(json.dumps(spark.report(), indent=1))
    spark.session.stop()
    print(f"{time.monotonic() - started:6.1f} s  done", flush=True)


if __name__ == "__main__":
    main()
