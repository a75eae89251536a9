"""A wide table that gets a column and new values of one: Frazil by column files, by rows and on
Spark, delta-rs, DuckLake, Lance, and Iceberg Java on Spark.

All of them are filled from the same Parquet files, one commit each, except Iceberg Java: one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

import pyarrow as pa
import pyarrow.parquet as pq

from bench.drivers.base import measured, serve, timed

KEY = "id"
ALL, ONE, SELECTIVE = "all columns", "the new column", "all columns of 100 rows"


class Wide:
    """What the workload asks for; subclasses call one library."""

    settings = "library defaults"

    def about(self) -> dict[str, Any]:
        """Versions and settings."""
        return {"version": self.version(), "settings": self.settings}

    def create(self, folder: str, files: list[str]) -> None:
        """A table of these Parquet files."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.fill(files)

    def add(self, name: str, value: str) -> dict[str, Any]:
        """A new column of doubles with a value for every row."""
        return measured(lambda: self.add_column(name, value))

    def update(self, name: str, value: str) -> dict[str, Any]:
        """New values of one column in every row."""
        return measured(lambda: self.update_column(name, value))

    def scans(self, name: str, first: int, repeats: int) -> dict[str, list[float]]:
        """Milliseconds of scans, by what they read; each is run once before."""
        works = self.reads(name, f"{KEY} >= {first} and {KEY} < {first + 100}")
        for work in works.values():
            work()
        times: dict[str, list[float]] = {what: [] for what in works}
        for _ in range(repeats):
            for what, work in works.items():
                times[what].append(timed(work)[0])
        return times

    def total(self, name: str) -> float:
        """The sum of a column, which peers must agree on."""
        raise NotImplementedError

    def version(self) -> str:
        """Of the library."""
        raise NotImplementedError

    def fill(self, files: list[str]) -> None:
        """Make the table."""
        raise NotImplementedError

    def add_column(self, name: str, value: str) -> object:
        """Add a column of doubles with values."""
        raise NotImplementedError

    def update_column(self, name: str, value: str) -> object:
        """Update a column in every row."""
        raise NotImplementedError

    def reads(self, name: str, where: str) -> dict[str, Callable[[], Any]]:
        """Scans of the new column and of all columns, by what they are called."""
        raise NotImplementedError


def consumed(batches: Iterable[pa.RecordBatch]) -> int:
    """Read to the end, keeping one batch at a time."""
    return sum(batch.num_rows for batch in batches)


class Frazil(Wide):
    """New values in column files; scans with them beside scans of a clone without."""

    settings = "column files; metadata files and catalog synced"
    mode = "columns"

    def version(self) -> str:
        import frazil

        return str(frazil.__version__)

    def fill(self, files: list[str]) -> None:
        import frazil

        self.catalog = frazil.connect(self.folder)
        self.table = self.catalog.create_table("bench.wide", pq.read_schema(files[0]))
        for file in files:
            self.table.append(pq.read_table(file))

    def add_column(self, name: str, value: str) -> object:
        return self.table.add_columns({name: value})

    def update_column(self, name: str, value: str) -> object:
        import frazil

        return self.table.update({name: frazil.expr(value)}, mode=self.mode)

    def total(self, name: str) -> float:
        import pyarrow.compute as pc

        batches = self.table.scan(columns=[name]).to_batches()
        return float(sum(pc.sum(batch.column(0)).as_py() or 0 for batch in batches))

    def reads(self, name: str, where: str) -> dict[str, Callable[[], Any]]:
        works = {}
        for kind, table in self._tables().items():
            query = f"select {{}} from {table.name}"
            works |= {
                f"{ONE}, Arrow{kind}": _scan(table, [name]),
                f"{ALL}, Arrow{kind}": _scan(table, None),
                f"{ONE}, SQL{kind}": self._query(query.format(f"min({name})")),
                f"{ALL}, SQL{kind}": self._query(query.format("min(columns(*))")),
                f"{SELECTIVE}, SQL{kind}": self._query(query.format("*") + f" where {where}"),
            }
        return works

    def _tables(self) -> dict[str, Any]:
        """The table, and the same rows without column files."""
        plain = self.table.clone(self.catalog, "bench.plain")
        plain.compact(merge_columns=True)
        return {"": self.table, PLAIN: plain}

    def _query(self, text: str) -> Callable[[], Any]:
        return lambda: self.catalog.sql(text).to_arrow().num_rows


PLAIN = ", without column files"


def _scan(table: Any, columns: list[str] | None) -> Callable[[], Any]:
    return lambda: consumed(table.scan(columns=columns).to_batches())


class FrazilRows(Frazil):
    """New values by writing the rows again."""

    settings = "rows are written again; metadata files and catalog synced"
    mode = "rows"

    def add_column(self, name: str, value: str) -> object:
        self.table.evolve_schema().add_column(name, "double").commit()
        return self.update_column(name, value)

    def _tables(self) -> dict[str, Any]:
        return {"": self.table}


class Delta(Wide):
    """Data files are written again."""

    settings = "copy on write; log files not synced"

    def version(self) -> str:
        import deltalake

        return str(deltalake.__version__)

    def fill(self, files: list[str]) -> None:
        from deltalake import DeltaTable, write_deltalake

        for file in files:
            write_deltalake(f"{self.folder}/wide", pq.read_table(file), mode="append")
        self.table = DeltaTable(f"{self.folder}/wide")

    def add_column(self, name: str, value: str) -> object:
        from deltalake.schema import Field, PrimitiveType

        self.table.alter.add_columns([Field(name, PrimitiveType("double"))])
        return self.update_column(name, value)

    def update_column(self, name: str, value: str) -> object:
        return self.table.update(updates={name: value})

    def _batches(self, query: str) -> Iterable[pa.RecordBatch]:
        from deltalake import QueryBuilder

        for batch in QueryBuilder().register("wide", self.table).execute(query):
            yield pa.record_batch(batch)

    def total(self, name: str) -> float:
        (batch, *_) = list(self._batches(f"select sum({name}) from wide"))
        return float(batch.column(0)[0].as_py())

    def reads(self, name: str, where: str) -> dict[str, Callable[[], Any]]:
        def query(text: str) -> Callable[[], Any]:
            return lambda: consumed(self._batches(text))

        return {
            f"{ONE}, Arrow": query(f"select {name} from wide"),
            f"{ALL}, Arrow": query("select * from wide"),
            f"{ONE}, SQL": query(f"select min({name}) from wide"),
            f"{SELECTIVE}, SQL": query(f"select * from wide where {where}"),
        }


class DuckLake(Wide):
    """Rows are deleted and written again."""

    settings = "metadata in a DuckDB file (synced at commit), library defaults"

    def version(self) -> str:
        import duckdb

        return f"duckdb {duckdb.__version__}"

    def fill(self, files: list[str]) -> None:
        import duckdb
        import duckdb_extension_ducklake as package

        (extension,) = Path(package.__file__).parent.rglob("ducklake.duckdb_extension")
        self.con = duckdb.connect()
        self.con.execute(f"load '{extension}'")
        self.con.execute(
            f"attach 'ducklake:{self.folder}/meta.ducklake' as lake "
            f"(data_path '{self.folder}/data/')"
        )
        self.con.execute("use lake")
        self.con.execute(f"create table wide as from '{files[0]}' where false")
        for file in files:
            self.con.execute(f"insert into wide from '{file}'")

    def add_column(self, name: str, value: str) -> object:
        self.con.execute(f"alter table wide add column {name} double")
        return self.update_column(name, value)

    def update_column(self, name: str, value: str) -> object:
        return self.con.execute(f"update wide set {name} = {value}").fetchall()

    def total(self, name: str) -> float:
        return float(self.con.execute(f"select sum({name}) from wide").fetchall()[0][0])

    def reads(self, name: str, where: str) -> dict[str, Callable[[], Any]]:
        def batches(text: str) -> Callable[[], Any]:
            return lambda: consumed(self.con.execute(text).to_arrow_reader(100_000))

        return {
            f"{ONE}, Arrow": batches(f"select {name} from wide"),
            f"{ALL}, Arrow": batches("select * from wide"),
            f"{ONE}, SQL": batches(f"select min({name}) from wide"),
            f"{ALL}, SQL": batches("select min(columns(*)) from wide"),
            f"{SELECTIVE}, SQL": batches(f"select * from wide where {where}"),
        }


class Lance(Wide):
    """New columns in files of their own; updates write rows again."""

    def version(self) -> str:
        import lance

        return str(lance.__version__)

    def fill(self, files: list[str]) -> None:
        import lance

        for file in files:
            lance.write_dataset(pq.read_table(file), f"{self.folder}/wide", mode="append")
        self.table = lance.dataset(f"{self.folder}/wide")

    def add_column(self, name: str, value: str) -> object:
        return self.table.add_columns({name: value})

    def update_column(self, name: str, value: str) -> object:
        return self.table.update({name: value})

    def total(self, name: str) -> float:
        import pyarrow.compute as pc

        return float(pc.sum(self.table.to_table(columns=[name]).column(0)).as_py())

    def reads(self, name: str, where: str) -> dict[str, Callable[[], Any]]:
        table = self.table
        return {
            f"{ONE}, Arrow": lambda: consumed(table.to_batches(columns=[name])),
            f"{ALL}, Arrow": lambda: consumed(table.to_batches()),
            f"{SELECTIVE}, SQL": lambda: consumed(table.to_batches(filter=where)),
        }


class OnSpark(Wide):
    """A table in Spark SQL."""

    name = "bench.shop.wide"
    catalog = "org.apache.iceberg.spark.SparkCatalog"

    def _start(self, **settings: str) -> None:
        from pyspark.sql import SparkSession

        from bench.drivers.spark_steps import CONF

        builder = SparkSession.builder.master("local[2]")
        for key, value in {**CONF, "spark.driver.memory": "4g", **settings}.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()

    def total(self, name: str) -> float:
        return float(self.spark.sql(f"select sum({name}) from {self.name}").collect()[0][0])

    def update_column(self, name: str, value: str) -> object:
        return self.spark.sql(f"update {self.name} set {name} = {value}").collect()

    def reads(self, name: str, where: str) -> dict[str, Callable[[], Any]]:
        works = {}
        for kind, table in self._tables().items():
            works |= {
                f"{ONE}{kind}": self._noop(f"select {name} from {table}"),
                f"{ALL}{kind}": self._noop(f"select * from {table}"),
                f"{SELECTIVE}{kind}": self._noop(f"select * from {table} where {where}"),
            }
        return works

    def _tables(self) -> dict[str, str]:
        return {"": self.name}

    def _noop(self, query: str) -> Callable[[], Any]:
        return lambda: self.spark.sql(query).write.format("noop").mode("overwrite").save()


class SparkFrazil(OnSpark):
    """Executors write column files."""

    settings = "column files written by executors"
    name = "frazil.bench.wide"

    def version(self) -> str:
        import pyspark

        return f"{Frazil().version()} on PySpark {pyspark.__version__}"

    def fill(self, files: list[str]) -> None:
        import frazil.spark

        self._start()
        self.own = Frazil()
        self.own.create(self.folder, files)
        frazil.spark.register(self.spark, self.own.catalog)
        self.own.table.set_properties({"write.column-update.mode": "columns"})

    def add_column(self, name: str, value: str) -> object:
        import frazil.spark

        return frazil.spark.add_columns(self.own.table.refresh(), {name: value})

    def _tables(self) -> dict[str, str]:
        self.own.table.refresh()
        return {kind: f"frazil.{table.name}" for kind, table in self.own._tables().items()}


class SparkIceberg(OnSpark):
    """Iceberg Java: data files are written again."""

    settings = "format version 3, copy on write (its default), Hadoop catalog"

    def version(self) -> str:
        import pyspark

        return f"1.12.0 on PySpark {pyspark.__version__}"

    def fill(self, files: list[str]) -> None:
        from tests.support.java import ICEBERG_RUNTIME, maven_jar

        self._start(
            **{
                "spark.jars": str(maven_jar(ICEBERG_RUNTIME)),
                "spark.sql.extensions": (
                    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
                ),
                "spark.sql.catalog.bench": self.catalog,
                "spark.sql.catalog.bench.type": "hadoop",
                "spark.sql.catalog.bench.warehouse": f"file://{self.folder}/warehouse",
            }
        )
        rows = self.spark.read.parquet(*files)
        rows.writeTo(self.name).using("iceberg").tableProperty("format-version", "3").create()

    def add_column(self, name: str, value: str) -> object:
        self.spark.sql(f"alter table {self.name} add column {name} double")
        return self.update_column(name, value)


DRIVERS = {
    "frazil": Frazil,
    "frazil-rows": FrazilRows,
    "frazil-spark": SparkFrazil,
    "delta": Delta,
    "ducklake": DuckLake,
    "lance": Lance,
    "iceberg": SparkIceberg,
}

if __name__ == "__main__":
    serve(DRIVERS[sys.argv[1]]())
