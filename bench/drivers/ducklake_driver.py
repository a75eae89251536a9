"""DuckLake: DuckDB with the ducklake extension from its package, metadata in a DuckDB file."""

from __future__ import annotations

import time

_BEGAN = time.perf_counter()

import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import duckdb  # noqa: E402
import duckdb_extension_ducklake  # noqa: E402

_IMPORTED_MS = (time.perf_counter() - _BEGAN) * 1000

import os  # noqa: E402
import shutil  # noqa: E402

import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

from bench.drivers import shop  # noqa: E402
from bench.drivers.base import Skip, measured, peak_kb, serve, timed  # noqa: E402
from bench.drivers.rows import (  # noqa: E402
    COLUMNS,
    arriving,
    keyed,
    keyed_parts,
    one_file,
    rows_of,
)

SQL = {"long": "bigint", "date": "date", "double": "double", "string": "varchar"}
META = "__ducklake_metadata_lake"
STEP = 20_000


def _extension() -> str:
    folder = Path(duckdb_extension_ducklake.__file__).parent
    return str(next(folder.rglob("ducklake.duckdb_extension")))


class Driver:
    """Operations the workloads ask for; times are of the SQL statement alone."""

    def about(self) -> dict[str, Any]:
        """Versions and settings."""
        return {
            "version": f"duckdb {duckdb.__version__}",
            "settings": "metadata in a DuckDB file (synced at commit), library defaults; tables "
            "populated by inserting metadata rows, commits by ducklake_add_data_files of a real "
            "small file (its footer is read), plans by our own SQL on its metadata tables (it "
            "is faster than ducklake_list_files)",
        }

    def _connect(self, folder: str) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.con = duckdb.connect()
        self.con.execute(f"load '{_extension()}'")
        self._attach()

    def _attach(self) -> None:
        self.con.execute(
            f"attach 'ducklake:{self.folder}/meta.ducklake' as lake "
            f"(data_path '{self.folder}/data/')"
        )

    def create(self, folder: str, columns: int = 12, **options: Any) -> None:
        """Make the table."""
        if options.get("s3"):
            raise Skip("DuckLake keeps its metadata in a database, not on the object store")
        self._connect(folder)
        fields = ", ".join(
            f"{name} {SQL[shop.kind_of(n)]}" for n, name in enumerate(shop.names(columns))
        )
        self.con.execute("create schema lake.shop")
        self.con.execute(f"create table lake.shop.orders({fields})")
        self.con.execute("alter table lake.shop.orders set partitioned by (order_date)")

    def open(self, folder: str, **_: Any) -> dict[str, float]:
        """Attach; how long importing and attaching took."""

        def work() -> None:
            self._connect(folder)
            self.con.execute("select * from lake.shop.orders limit 0")

        ms, _result = timed(work)
        return {"import_ms": _IMPORTED_MS, "load_ms": ms, "peak_kb": peak_kb()}

    # Metadata rows, inserted as the extension would

    def populate(self, total: int, columns: int = 12) -> float:
        """Insert one snapshot with all files."""
        self.con.execute("detach lake")
        meta = duckdb.connect(str(self.folder / "meta.ducklake"))
        began = time.perf_counter()
        meta.execute("begin")
        (snapshot,) = meta.execute("select max(snapshot_id) + 1 from ducklake_snapshot").fetchone()
        (table,) = meta.execute("select max(table_id) from ducklake_table").fetchone()
        (part,) = meta.execute("select max(partition_id) from ducklake_partition_info").fetchone()
        meta.execute(
            "insert into ducklake_snapshot select snapshot_id + 1, now(), schema_version, "
            f"next_catalog_id, next_file_id + {total} from ducklake_snapshot "
            f"where snapshot_id = {snapshot - 1}"
        )
        meta.execute(
            "insert into ducklake_snapshot_changes(snapshot_id, changes_made) "
            f"values ({snapshot}, 'inserted_into_table:{table}')"
        )
        for start in range(0, total, STEP):
            self._insert(
                meta, start, min(start + STEP, total), total, columns, table, snapshot, part
            )
        meta.execute(
            "insert into ducklake_table_stats(table_id, record_count, next_row_id, file_size_bytes)"
            f" values ({table}, {total * shop.ROWS}, {total * shop.ROWS}, {total * 100_000_000})"
        )
        meta.execute("commit")
        meta.close()
        spent = (time.perf_counter() - began) * 1000
        self._attach()
        return spent

    def _insert(
        self,
        meta: duckdb.DuckDBPyConnection,
        start: int,
        stop: int,
        total: int,
        columns: int,
        table: int,
        snapshot: int,
        part: int,
    ) -> None:
        files = shop.files(start, stop, total=total, columns=columns)
        ids = np.arange(start, stop)
        days = pa.array(files.days, pa.int32()).cast(pa.date32()).cast(pa.string())
        arrow = pa.table({"id": ids, "path": files.paths, "size": files.sizes, "day": days})
        meta.register("arriving", arrow)
        meta.execute(
            "insert into ducklake_data_file(data_file_id, table_id, begin_snapshot, path, "
            "path_is_relative, file_format, record_count, file_size_bytes, footer_size, "
            "row_id_start, partition_id) "
            f"select id, {table}, {snapshot}, path, true, 'parquet', {shop.ROWS}, size, 1000, "
            f"id * {shop.ROWS}, {part} from arriving"
        )
        meta.execute(
            f"insert into ducklake_file_partition_value select id, {table}, 0, day from arriving"
        )
        # In the order that files added one after the other leave: file by file, not by column.
        texts = [self._bounds(files, column, days) for column in range(columns)]
        bounds = pa.table(
            {
                "id": np.concatenate([ids] * columns),
                "field": np.repeat(np.arange(1, columns + 1), len(ids)),
                "lower": pa.concat_arrays([lower for lower, _ in texts]),
                "upper": pa.concat_arrays([upper for _, upper in texts]),
            }
        )
        meta.register("bounds", bounds)
        doubles = [n + 1 for n in range(columns) if shop.kind_of(n) == "double"] or [0]
        meta.execute(
            "insert into ducklake_file_column_stats(data_file_id, table_id, column_id, "
            "column_size_bytes, value_count, null_count, min_value, max_value, contains_nan) "
            f"select id, {table}, field, 1000, {shop.ROWS}, 0, lower, upper, "
            f"case when field in ({', '.join(map(str, doubles))}) then false end "
            "from bounds order by id, field"
        )

    @staticmethod
    def _bounds(files: shop.Files, column: int, days: pa.Array) -> tuple[pa.Array, pa.Array]:
        if shop.kind_of(column) == "date":
            return days, days
        lower, upper = files.lower[column], files.upper[column]
        return pa.array(lower).cast(pa.string()), pa.array(upper).cast(pa.string())

    def commits(self, start: int, count: int, total: int) -> list[float]:
        """One file per commit, a hard link to one small real file."""
        pattern = self.folder / "one.parquet"
        if not pattern.exists():
            columns = len(self.con.execute("describe lake.shop.orders").fetchall())
            self._write_file(pattern, columns)
        found = []
        for index in range(start, start + count):
            day = f"order_date={shop.date_of(shop.FIRST_DAY)}"
            path = self.folder / "data" / day / f"file-{index}.parquet"
            path.parent.mkdir(exist_ok=True, parents=True)
            os.link(pattern, path)
            call = (
                f"call ducklake_add_data_files('lake', 'orders', '{path}', schema => 'shop', "
                "hive_partitioning => true)"
            )
            found.append(timed(lambda call=call: self.con.execute(call).fetchall())[0])
        return found

    def _write_file(self, path: Path, columns: int) -> None:
        files = shop.files(0, 10, total=100, columns=columns)
        arrays: dict[str, Any] = {}
        for column, name in enumerate(shop.names(columns)):
            values = pa.array(files.lower[column])
            if shop.kind_of(column) == "date":
                values = pa.array([shop.date_of(files.days[0])] * 10, pa.date32())
            arrays[name] = values
        pq.write_table(pa.table(arrays), path)

    def _listing(self, *conditions: tuple[int, str, str]) -> str:
        """The query for live files whose column statistics admit the given values."""
        (table,) = self.con.execute(f"select max(table_id) from {META}.ducklake_table").fetchone()
        wanted = ""
        for column, kind, value in conditions:
            wanted += (
                f" and data_file_id in (select data_file_id from {META}.ducklake_file_column_stats "
                f"where table_id = {table} and column_id = {column + 1} "
                f"and {value} between try_cast(min_value as {kind}) "
                f"and try_cast(max_value as {kind}))"
            )
        return (
            "select data.data_file_id, data.path, data.record_count, data.file_size_bytes, "
            f"gone.path from {META}.ducklake_data_file data left join "
            f"(from {META}.ducklake_delete_file where table_id = {table} and end_snapshot is null) "
            f"gone using (data_file_id) where data.table_id = {table} "
            f"and data.end_snapshot is null{wanted}"
        )

    def _plan(self, cold: bool, *conditions: tuple[int, str, str]) -> dict[str, Any]:
        def work() -> int:
            if cold:
                self.con.execute("detach lake")
                self._attach()
            return self.con.execute(self._listing(*conditions)).to_arrow_table().num_rows

        ms, files = timed(work)
        return {"ms": ms, "files": files, "peak_kb": peak_kb()}

    def plan(self, kind: str, total: int, cold: bool) -> dict[str, Any]:
        """Plan a scan; cold attaches the catalog again first."""
        day = (1, "date", f"date '{shop.WANTED_DAY}'")
        country = (2, "varchar", f"'{shop.WANTED_COUNTRY}'")
        conditions = {
            "all": (),
            "day": (day,),
            "day and country": (day, country),
            "order_id": ((0, "bigint", str(shop.wanted_order(total))),),
        }[kind]
        return self._plan(cold, *conditions)

    def plan_wide(self, total: int) -> dict[str, Any]:
        """Two columns of a wide table."""
        low = int(shop.files(total // 2, total // 2 + 1, total=total).lower[3][0])
        country = (2, "varchar", f"'{shop.WANTED_COUNTRY}'")
        return self._plan(True, (3, "bigint", str(low)), country)

    def remove_file(self, index: int, total: int) -> float:
        """Not offered."""
        raise Skip("DuckLake has no call that removes a file without reading it")

    def create_rows(self, folder: str, file_count: int, rows: int) -> float:
        """A table with data: so many files of so many rows, one commit each."""
        self.create(folder, columns=COLUMNS)
        began = time.perf_counter()
        for index in range(file_count):
            self.con.register("arriving", rows_of(index, rows))
            self.con.execute("insert into lake.shop.orders from arriving")
        return (time.perf_counter() - began) * 1000

    def delete(self, where: str) -> float:
        """Delete rows by a filter (small deletes are inlined in the catalog by default)."""
        statement = f"delete from lake.shop.orders where {where}"
        return timed(lambda: self.con.execute(statement).fetchall())[0]

    def count(self) -> int:
        """Rows of the table, by reading them."""
        found = self.con.execute("select count(order_id) from lake.shop.orders").fetchone()
        return int(found[0])

    def create_keyed(self, folder: str, rows: int, files: int) -> None:
        """A table with a key, one commit per file."""
        self._connect(folder)
        self.con.register("arriving", keyed(np.arange(1), 0))
        self.con.execute("create table lake.keyed as from arriving where false")
        for part in keyed_parts(rows, files):
            self.con.register("arriving", part)
            self.con.execute("insert into lake.keyed from arriving")

    def upsert(self, rows: int, count: int, turn: int) -> dict[str, Any]:
        """A merge by the key."""
        self.con.register("arriving", arriving(rows, count, turn))
        statement = (
            "merge into lake.keyed t using arriving s on (t.id = s.id) "
            "when matched then update when not matched then insert"
        )
        return measured(lambda: self.con.execute(statement).fetchall()[0][0])

    def compact(self) -> dict[str, Any]:
        """Small files become large ones."""
        statement = "call ducklake_merge_adjacent_files('lake')"
        return measured(lambda: len(self.con.execute(statement).fetchall()))

    def keyed_state(self) -> list[int]:
        """Rows and files of the table with a key."""
        (rows,) = self.con.execute("select count(id) from lake.keyed").fetchone()
        files = self.con.execute("from ducklake_list_files('lake', 'keyed')").fetchall()
        return [int(rows), len(files)]

    def add_file(self, order_id: int, columns: int = 12) -> None:
        """One file that exists, in a table of files that do not."""
        self.con.register("arriving", one_file(order_id, columns))
        self.con.execute("insert into lake.shop.orders from arriving")

    def lookup(self, order_id: int, cold: bool) -> dict[str, Any]:
        """One row, end to end; cold attaches the catalog again first."""

        def work() -> int:
            if cold:
                self.con.execute("detach lake")
                self._attach()
            query = f"from lake.shop.orders where order_id = {order_id}"
            return self.con.execute(query).to_arrow_table().num_rows

        return measured(work)

    def tpch(self, folder: str, source: str) -> None:
        """The tables from Parquet files, the large ones partitioned by year."""
        self._connect(folder)
        self.con.execute("use lake")
        for path in sorted(Path(source).glob("*.parquet")):
            name = path.stem
            self.con.execute(f"create table {name} as from '{path}' where false")
            if name in ("lineitem", "orders"):
                day = "l_shipdate" if name == "lineitem" else "o_orderdate"
                self.con.execute(f"alter table {name} set partitioned by (year({day}))")
            rows = self.con.execute(f"from '{path}'").to_arrow_table()
            parts = 4 if name in ("lineitem", "orders") else 1  # as Frazil's were appended
            size = -(-rows.num_rows // parts)
            for part in range(parts):
                self.con.register("arriving", rows.slice(part * size, size))
                self.con.execute(f"insert into {name} from arriving")

    def query(self, text: str) -> dict[str, Any]:
        """Run a statement to its last row."""
        return measured(lambda: self.con.execute(text).to_arrow_table().num_rows)

    def changes_marker(self) -> int:
        """The current snapshot."""
        return int(self.con.execute("from ducklake_current_snapshot('lake')").fetchone()[0])

    def changes(self, since: int) -> dict[str, Any]:
        """Files that came or went since, by a query on the metadata tables."""
        query = (
            "select path, begin_snapshot, end_snapshot from __ducklake_metadata_lake."
            f"ducklake_data_file where begin_snapshot > {since} or end_snapshot > {since}"
        )
        ms, found = timed(lambda: self.con.execute(query).to_arrow_table())
        return {"ms": ms, "files": found.num_rows}

    def close(self) -> None:
        """Let another process open the catalog."""
        self.con.close()
        shutil.rmtree(self.folder / "tmp", ignore_errors=True)


if __name__ == "__main__":
    serve(Driver())
