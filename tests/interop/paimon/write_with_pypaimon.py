"""Writes small Paimon tables with pypaimon and the rows it reads back; runs in pypaimon's own venv.

    python write_with_pypaimon.py <warehouse> <expected>

For every snapshot, `<expected>/<table>/main/<snapshot>.jsonl` holds the rows in the same text form
as the Java harness writes.
"""

from __future__ import annotations

import datetime
import decimal
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from pypaimon import CatalogFactory, Schema
from pypaimon.schema.data_types import AtomicType
from pypaimon.schema.schema_change import SchemaChange

from tests.interop.paimon.text_form import row_lines

STATS = {"metadata.stats-mode": "full"}
TRACKED = {"row-tracking.enabled": "true"}
EVOLVING = {**TRACKED, "data-evolution.enabled": "true", "deletion-vectors.enabled": "true"}


class Writer:
    """One warehouse and its expected rows."""

    def __init__(self, warehouse: Path, expected: Path) -> None:
        self.catalog = CatalogFactory.create({"warehouse": str(warehouse)})
        self.catalog.create_database("db", True)
        self.warehouse = warehouse
        self.expected = expected

    def create(self, name: str, schema: pa.Schema, **arguments: Any) -> Any:
        options = {**STATS, **arguments.pop("options", {})}
        made = Schema.from_pyarrow_schema(schema, options=options, **arguments)
        self.catalog.create_table(f"db.{name}", made, False)
        return self.table(name)

    def table(self, name: str) -> Any:
        return self.catalog.get_table(f"db.{name}")

    def write(self, table: Any, rows: pa.Table, *, overwrite: dict[str, str] | None = None) -> None:
        builder = table.new_batch_write_builder()
        if overwrite is not None:
            builder = builder.overwrite(overwrite)
        write, commit = builder.new_write(), builder.new_commit()
        write.write_arrow(rows)
        commit.commit(write.prepare_commit())
        write.close()
        commit.close()

    def dump(self, name: str) -> None:
        folder = self.expected / name / "main"
        folder.mkdir(parents=True)
        root = self.warehouse / "db.db" / name / "snapshot"
        for file in root.glob("snapshot-*"):
            snapshot = file.name.split("-")[1]
            table = self.table(name).copy({"scan.snapshot-id": snapshot})
            builder = table.new_read_builder()
            splits = builder.new_scan().plan().splits()
            read = builder.new_read().to_arrow(splits) if splits else None
            lines = [] if read is None else row_lines(read)
            (folder / f"{snapshot}.jsonl").write_text("".join(line + "\n" for line in lines))


def append_tables(writer: Writer) -> None:
    schema = pa.schema(
        [("id", pa.int64()), ("dt", pa.string()), ("d", pa.date32()), ("v", pa.float64())]
    )
    table = writer.create("py_append", schema, partition_keys=["dt", "d"])
    day = datetime.date(2024, 1, 1)
    first = {"id": [1, 2, 3], "dt": ["a", None, ""], "d": [day, day, None], "v": [1.5, None, -2.5]}
    writer.write(table, pa.table(first, schema=schema))
    table.create_tag("v1")
    odd = {"id": [4, 5], "dt": ["p/with %=long", "a"], "d": [day, day], "v": [0.0, float("inf")]}
    writer.write(table, pa.table(odd, schema=schema))
    replacing = {"id": [6], "dt": ["a"], "d": [day], "v": [6.0]}
    writer.write(table, pa.table(replacing, schema=schema), overwrite={"dt": "a"})
    writer.dump("py_append")

    types = pa.schema(
        [
            *(("i", pa.int32()), ("sm", pa.int16()), ("t", pa.int8()), ("l", pa.int64())),
            *(("f", pa.float32()), ("d", pa.float64()), ("b", pa.bool_()), ("s", pa.string())),
            *(("dc", pa.decimal128(10, 2)), ("db", pa.decimal128(30, 5)), ("by", pa.binary())),
            *(("dt", pa.date32()), ("t3", pa.timestamp("ms")), ("t6", pa.timestamp("us"))),
        ]
    )
    table = writer.create("py_types", types)
    base = datetime.datetime(2024, 1, 2, 3, 4, 5)
    for part in range(2):
        rows = [
            {
                "i": n,
                "sm": n * 7,
                "t": n,
                "l": n * 10**12,
                "f": n * 1.5,
                "d": n * -2.25,
                "b": n % 2 == 0,
                "s": f"long string number {n:03d}",
                "by": bytes([0, n % 200]),
                "dc": decimal.Decimal(n) + decimal.Decimal("0.25"),
                "db": decimal.Decimal(f"1234567890123456789{n % 10}.12345"),
                "dt": day + datetime.timedelta(days=n),
                "t3": base + datetime.timedelta(milliseconds=n * 1111),
                "t6": base + datetime.timedelta(microseconds=n * 111111),
            }
            for n in range(part * 5, part * 5 + 5)
        ]
        rows.append(dict.fromkeys(types.names))
        writer.write(table, pa.Table.from_pylist(rows, schema=types))
    writer.dump("py_types")

    simple = pa.schema([("id", pa.int32()), ("s", pa.string())])
    for format in ("orc", "avro"):
        table = writer.create(f"py_{format}", simple, options={"file.format": format})
        writer.write(table, pa.table({"id": [1, 2], "s": ["x", None]}, schema=simple))
        writer.dump(f"py_{format}")
    table = writer.create("py_rowtracking", simple, options=TRACKED)
    for n in range(3):
        writer.write(table, pa.table({"id": [n, n + 10], "s": ["x", None]}, schema=simple))
    writer.dump("py_rowtracking")
    table = writer.create("py_data_evolution", simple, options=EVOLVING)
    writer.write(table, pa.table({"id": [1, 2, 3, 4], "s": list("abcd")}, schema=simple))
    builder = writer.table("py_data_evolution").new_batch_write_builder()
    partial = builder.new_write().with_write_type(["s"])
    partial.write_arrow(pa.table({"s": list("ABCD")}))
    messages = partial.prepare_commit()
    for message in messages:
        for file in message.new_files:
            file.first_row_id = 0
    builder.new_commit().commit(messages)
    writer.dump("py_data_evolution")
    table = writer.create("py_vectors", simple, options=EVOLVING)
    writer.write(table, pa.table({"id": [1, 2, 3, 4], "s": list("abcd")}, schema=simple))
    builder = writer.table("py_vectors").new_batch_write_builder()
    update, commit = builder.new_update(), builder.new_commit()
    commit.commit(update.delete_by_row_id([1, 3]))
    writer.dump("py_vectors")


def evolved_tables(writer: Writer) -> None:
    schema = pa.schema([("id", pa.int32()), ("name", pa.string()), ("x", pa.int32())])
    for name in ("py_evolved", "py_reused"):
        table = writer.create(name, schema)
        rows = {"id": [1, 2], "name": ["a", "b"], "x": [10, 20]}
        writer.write(table, pa.table(rows, schema=schema))
    writer.catalog.alter_table(
        "db.py_evolved",
        [
            SchemaChange.rename_column("name", "title"),
            SchemaChange.add_column("extra", AtomicType("STRING")),
            SchemaChange.update_column_type("x", AtomicType("BIGINT")),
        ],
    )
    evolved = pa.schema(
        [("id", pa.int32()), ("title", pa.string()), ("x", pa.int64()), ("extra", pa.string())]
    )
    rows = {"id": [3], "title": ["c"], "x": [10**10], "extra": ["new"]}
    writer.write(writer.table("py_evolved"), pa.table(rows, schema=evolved))
    writer.dump("py_evolved")
    writer.catalog.alter_table("db.py_reused", [SchemaChange.drop_column("x")])
    writer.catalog.alter_table("db.py_reused", [SchemaChange.add_column("x", AtomicType("STRING"))])
    reused = pa.schema([("id", pa.int32()), ("name", pa.string()), ("x", pa.string())])
    writer.write(
        writer.table("py_reused"), pa.table({"id": [3], "name": ["c"], "x": ["s"]}, schema=reused)
    )
    writer.dump("py_reused")


def keyed_tables(writer: Writer) -> None:
    schema = pa.schema([pa.field("k", pa.int32(), nullable=False), ("v", pa.string())])
    one = {"bucket": "1"}
    table = writer.create("py_pk", schema, primary_keys=["k"], options=one)
    writer.write(table, pa.table({"k": [1, 2, 3], "v": ["a", "b", "c"]}, schema=schema))
    writer.write(table, pa.table({"k": [2, 4], "v": ["B", "d"]}, schema=schema))
    writer.dump("py_pk")
    kinds = pa.schema(
        [pa.field("k", pa.int32(), nullable=False), ("v", pa.string()), ("rk", pa.string())]
    )
    options = {**one, "rowkind.field": "rk"}
    table = writer.create("py_pk_kinds", kinds, primary_keys=["k"], options=options)
    rows = {"k": [1, 2, 3], "v": ["a", "b", "c"], "rk": ["+I", "-D", "+I"]}
    writer.write(table, pa.table(rows, schema=kinds))


def main() -> None:
    writer = Writer(Path(sys.argv[1]), Path(sys.argv[2]))
    append_tables(writer)
    evolved_tables(writer)
    keyed_tables(writer)
    Path(sys.argv[3]).touch()  # complete, however the process ends


if __name__ == "__main__":
    main()
