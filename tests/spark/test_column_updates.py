"""Columns that executors compute and write: UPDATE in SQL, new columns, values by key."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

import frazil
import frazil.spark
from frazil.errors import FrazilError, InvalidInput
from frazil.rows.columns.column_changes import updated_columns
from frazil.rows.columns.column_sink import ColumnSink
from frazil.rows.planned import Planned
from frazil.spark.write.column_task import FILE_BASE, FILE_WORK, ValuesTask
from tests.support.column_files import handmade, live, local

pytestmark = pytest.mark.spark

LINEAGE = ["id", "price", "_row_id", "_last_updated_sequence_number"]


def rows(table: frazil.Table, *columns: str) -> list[dict[str, Any]]:
    found = table.refresh().scan(columns=list(columns) or None).to_arrow()
    return list(found.sort_by("id").to_pylist())


def column_files(table: frazil.Table) -> set[str]:
    return {path.name for path in local(table, "data").rglob("*-columns.parquet")}


def used(table: frazil.Table) -> set[str]:
    held = [file for entry in live(table.refresh()) for file in entry.get("column_files") or ()]
    return {file["location"].rpartition("/")[2] for file in held}


def test_update_in_sql_writes_columns(spark: Any, table: frazil.Table) -> None:
    table.set_properties({"write.column-update.mode": "columns"})
    table.delete("id = 12")
    before = {row["id"]: row for row in rows(table, *LINEAGE)}
    files = len(live(table))
    spark.sql("UPDATE frazil.shop.orders SET price = price * 10 WHERE id >= 10 AND country = 'DE'")
    tip = table.refresh().current_snapshot()
    assert tip is not None
    expected = []
    for id, row in before.items():
        is_new = id >= 10 and id % 2 == 0
        number = tip.sequence_number if is_new else row["_last_updated_sequence_number"]
        price = id * 10.0 if is_new else float(id)
        expected.append({**row, "price": price, "_last_updated_sequence_number": number})
    assert rows(table, *LINEAGE) == expected
    assert len(live(table)) == files
    assert used(table) == column_files(table)
    assert len(used(table)) == 3
    seen = spark.sql("SELECT id, price FROM frazil.shop.orders ORDER BY id").toArrow().to_pylist()
    assert seen == [{"id": row["id"], "price": row["price"]} for row in expected]
    assert not table.check(deep=True).problems
    spark.sql("UPDATE frazil.shop.orders SET price = _pos, country = 'FR' WHERE id < 3")
    assert [(r["price"], r["country"]) for r in rows(table)[:3]] == [(0.0, "FR")] * 3
    start = table.snapshots()[-2]
    feed = table.changes(since=start).to_arrow().to_pylist()
    assert {(row["id"], row["_change_type"]) for row in feed} == {
        (id, f"update_{when}image") for id in range(3) for when in ("pre", "post")
    }


def test_auto_writes_columns_where_they_are_less(spark: Any, table: frazil.Table) -> None:
    wide = "a long note that is most of the row " * 3
    table.add_columns({"note": f"'{wide}' || id"})
    table.compact(merge_columns=True)
    table.set_properties({"write.column-update.mode": "auto"})
    spark.sql("UPDATE frazil.shop.orders SET price = -1 WHERE day = '2024-01-01' OR id IN (1, 4)")
    expected = {id: -1.0 if id % 3 == 0 or id in (1, 4) else float(id) for id in range(90)}
    assert {row["id"]: row["price"] for row in rows(table)} == expected
    assert len(used(table)) == 1
    with_vectors = [entry for entry in live(table) if entry["deletion_vector"] is not None]
    assert [entry["deletion_vector"]["cardinality"] for entry in with_vectors] == [2]
    done = frazil.spark.update(table, {"price": frazil.expr("price + 1")}, mode="rows")
    assert (done.rows_updated, done.column_files) == (90, 0)
    done = frazil.spark.update(table, {"price": frazil.expr("price + 1")}, mode="columns")
    assert (done.rows_updated, done.column_files) == (90, 3)
    assert {row["id"]: row["price"] - 2 for row in rows(table)} == expected
    with pytest.raises(InvalidInput, match="expected 'rows', 'columns' or 'auto'"):
        frazil.spark.update(table, {"price": 1.0}, mode="cells")


def test_columns_are_added(spark: Any, table: frazil.Table) -> None:
    table.delete("id = 5")
    done = frazil.spark.add_columns(
        table,
        {
            "double": "price * 2",
            "label": F.concat(F.col("country"), F.lit("!")),
            "place": lambda batch: pa.array([[float(id), 0.5] for id in batch["id"].to_pylist()]),
        },
        read_columns=["id"],
    )
    assert (done.rows_updated, done.column_files, len(done.snapshots)) == (89, 6, 1)
    kinds = [str(column.field_type) for column in table.refresh().schema.fields[4:]]
    assert kinds == ["double", "string", "list<double>"]
    expected = [
        {
            "id": id,
            "double": id * 2.0,
            "label": "US!" if id % 2 else "DE!",
            "place": [float(id), 0.5],
        }
        for id in range(90)
        if id != 5
    ]
    columns = ["id", "double", "label", "place"]
    assert rows(table, *columns) == expected
    seen = frazil.spark.table(table).select(*columns).orderBy("id").toArrow().to_pylist()
    assert seen == expected
    assert not table.check(deep=True).problems


def test_columns_of_an_empty_table_have_types(spark: Any, catalog: frazil.Catalog) -> None:
    made = catalog.create_table("shop.empty", pa.schema([("id", pa.int64())]))
    frazil.spark.add_columns(made, {"a": "id * 2.5D", "b": lambda batch: batch["id"]})
    assert [str(c.field_type) for c in made.refresh().schema.fields[1:]] == ["double", "long"]


def test_values_by_key(spark: Any, table: frazil.Table) -> None:
    scores = spark.sql("SELECT id * 7 AS ID, id / 2D AS score, -1D AS price FROM range(20)")
    done = frazil.spark.merge_columns(table, scores, on="id")
    assert (done.rows_updated, done.rows_added) == (13, 0)
    expected = {id: (id / 14, -1.0) if id % 7 == 0 else (None, float(id)) for id in range(90)}
    assert {row["id"]: (row["score"], row["price"]) for row in rows(table)} == expected
    twice = scores.union(scores)
    with pytest.raises(FrazilError, match="more than one new value"):
        frazil.spark.merge_columns(table, twice, on="id")
    with pytest.raises(InvalidInput, match="no column besides the key"):
        frazil.spark.merge_columns(table, scores.select("id"), on="id")
    with pytest.raises(InvalidInput, match="key columns of the table: nothing"):
        frazil.spark.merge_columns(table, scores, on="nothing")


def test_the_engine_of_a_transaction_writes_columns(spark: Any, table: frazil.Table) -> None:
    with table.transaction(engine=frazil.spark.SparkEngine(spark)) as tx:
        tx.add_columns({"double": "id * 2", "half": lambda batch: batch["price"]})
        tx.update({"double": frazil.expr("double + 1")}, "id >= 80", mode="columns")
        tx.merge_columns({"id": [3], "half": [1.5]}, on="id")
    expected = {id: (id * 2 + (id >= 80), 1.5 if id == 3 else float(id)) for id in range(90)}
    assert {row["id"]: (row["double"], row["half"]) for row in rows(table)} == expected
    assert not table.check(deep=True).problems


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE frazil.shop.orders SET day = DATE'2024-05-01'", "partitioned by day"),
        ("UPDATE frazil.shop.orders SET price = raise_error('no ' || id)", "no "),
    ],
)
def test_an_update_that_fails_leaves_nothing(
    spark: Any, table: frazil.Table, statement: str, message: str
) -> None:
    table.set_properties({"write.column-update.mode": "columns"})
    before = table.refresh().current_snapshot()
    with pytest.raises(Exception, match=message):
        spark.sql(statement)
    assert table.refresh().current_snapshot() == before
    assert not column_files(table)


def test_tasks_that_run_again_leave_orphans_and_nothing_wrong(
    spark: Any, table: frazil.Table
) -> None:
    """An executor that is lost after its files were written, or a second one that runs the same
    task at the same time: the driver hears of one of the two."""
    planned = Planned.of(table.scan())
    price = table.metadata.schema().find_field("price")
    sink = ColumnSink.of(planned, [price], handle=table._handle, metadata=table.metadata)
    task = pickle.loads(pickle.dumps(ValuesTask(sink)))
    batches = []
    for file in sink.files(planned):
        keys = [file.base, file.base + 1]
        batches.append(
            pa.record_batch(
                {
                    "price": pa.array([None, -5.0, -6.0]),
                    "__frazil_key": pa.array([None, *keys]),
                    FILE_BASE: pa.array([file.base] * 3),
                    FILE_WORK: pa.array([pickle.dumps(file), None, None]),
                }
            )
        )
    lost = [pickle.loads(answer.column(0)[0].as_py()) for answer in task.run(iter(batches))]
    kept = [pickle.loads(answer.column(0)[0].as_py()) for answer in task.run(iter(batches))]
    assert len(lost) == len(kept) == 3
    change = updated_columns("main", planned, kept)
    handle = replace(table._handle)
    handle.refresh()
    handle.commit(change)
    assert sorted(row["price"] for row in rows(table))[:6] == [-6.0] * 3 + [-5.0] * 3
    assert used(table) < column_files(table)
    assert len(column_files(table)) == 6
    soon = datetime.now(UTC) + timedelta(minutes=5)
    table.remove_orphan_files(older_than=soon)
    assert column_files(table) == used(table)
    assert len(rows(table)) == 90
    assert not table.check(deep=True).problems


def test_files_of_another_writer_are_read(spark: Any, catalog: frazil.Catalog) -> None:
    """Several column files of one data file, in row groups of their own, below a vector."""
    schema = pa.schema([("id", pa.int64()), ("price", pa.float64()), ("name", pa.string())])
    made = catalog.create_table("shop.t", schema, properties={"write.parquet.row-group-limit": "4"})
    made.append(pa.table([list(range(10)), [0.0] * 10, ["x"] * 10], schema=schema))
    made.delete("id = 3 or id = 9")
    prices = [None if at in (3, 9) else -float(at) for at in range(10)]
    handmade(made, {"elsewhere": (2, prices), "unused": (77, ["x"] * 10)}, ids=(2,))
    first = live(made)[0]["column_files"][0]["location"]
    names: dict[str, tuple[int, list[Any]]] = {
        "title": (3, [f"t{at}" for at in range(10)]),
        "price": (2, [99.0] * 10),
    }
    handmade(made, names, ids=(3,), row_group_size=7, kept=(first,))
    frazil.spark.register(spark, catalog)
    seen = spark.sql("SELECT * FROM frazil.shop.t ORDER BY id").toArrow().to_pylist()
    assert seen == [
        {"id": at, "price": -float(at), "name": f"t{at}"} for at in range(10) if at not in (3, 9)
    ]
    assert spark.sql("SELECT id FROM frazil.shop.t WHERE name = 't8'").collect()[0][0] == 8
    assert spark.sql("SELECT sum(price) FROM frazil.shop.t").collect()[0][0] == -33.0


def test_a_query_opens_the_file_that_has_its_columns(spark: Any, catalog: frazil.Catalog) -> None:
    schema = pa.schema([("id", pa.int64()), ("price", pa.float64()), ("name", pa.string())])
    made = catalog.create_table("shop.t", schema)
    made.append(pa.table([list(range(10)), [0.5] * 10, ["x"] * 10], schema=schema))
    (wide,) = local(made, "data").iterdir()
    made.delete("id = 3 or id = 9")
    made.add_columns({"twice": "id * 2"})
    made.update({"price": frazil.expr("id + 0.25")}, "id > 4", mode="columns")
    frazil.spark.register(spark, catalog)
    hidden = wide.with_suffix(".hidden")
    wide.rename(hidden)

    def asked(query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in spark.sql(query).collect()]

    left = [at for at in range(10) if at not in (3, 9)]
    kept = [0.5 if at < 5 else at + 0.25 for at in left]
    assert asked("SELECT sum(twice), count(*) FROM frazil.shop.t") == [(2 * sum(left), 8)]
    assert asked("SELECT _pos, price FROM frazil.shop.t ORDER BY _pos") == [
        *zip(left, kept, strict=True)
    ]
    assert asked("SELECT price FROM frazil.shop.t WHERE price > 8") == [(8.25,)]
    hidden.rename(wide)
    both = asked("SELECT id, twice, price FROM frazil.shop.t ORDER BY id")
    assert both == [(at, at * 2, price) for at, price in zip(left, kept, strict=True)]
    for file in local(made, "data").glob("*-columns.parquet"):
        file.unlink()
    query = "SELECT id, name FROM frazil.shop.t WHERE id > 6 ORDER BY id"
    assert asked(query) == [(7, "x"), (8, "x")]


def test_small_histories_agree_with_rows(spark: Any, table: frazil.Table) -> None:
    """The same statements on a table that writes rows and one that writes columns."""
    table.set_properties({"write.column-update.mode": "columns"})
    plain = {row["id"]: dict(row) for row in rows(table)}
    steps = [
        ("UPDATE frazil.shop.orders SET price = price + 1 WHERE id % 4 = 0", "price", 4),
        ("UPDATE frazil.shop.orders SET country = 'X' WHERE id % 5 = 0", "country", 5),
        ("DELETE FROM frazil.shop.orders WHERE id % 7 = 0", None, 7),
        ("UPDATE frazil.shop.orders SET price = price * 2 WHERE id % 3 = 0", "double", 3),
    ]
    for statement, column, every in steps:
        spark.sql(statement)
        for id in [id for id in plain if id % every == 0]:
            match column:
                case None:
                    del plain[id]
                case "price":
                    plain[id]["price"] += 1
                case "double":
                    plain[id]["price"] *= 2
                case "country":
                    plain[id]["country"] = "X"
    spark.sql("INSERT INTO frazil.shop.orders VALUES (500, DATE'2024-01-01', 'US', 1.0)")
    plain[500] = {"id": 500, "day": date(2024, 1, 1), "country": "US", "price": 1.0}
    expected = [plain[id] for id in sorted(plain)]
    assert rows(table) == expected
    frame = spark.sql("SELECT * FROM frazil.shop.orders ORDER BY id")
    assert frame.toArrow().to_pylist() == expected
    assert not table.check(deep=True).problems
