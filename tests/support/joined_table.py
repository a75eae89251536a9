"""A table whose columns lie in files of other row groups, and queries that say what it holds."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

import frazil
from frazil.data.schema import parquet_schema
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import NestedField
from tests.support.column_files import commit_file, live

Row = dict[str, Any]

SCHEMA = Schema(
    NestedField(field_id=1, name="id", field_type=ice.LongType()),
    NestedField(field_id=2, name="price", field_type=ice.DoubleType()),
    NestedField(field_id=3, name="name", field_type=ice.StringType()),
    NestedField(
        field_id=4,
        name="place",
        field_type=ice.StructType(
            NestedField(field_id=20, name="x", field_type=ice.IntegerType()),
            NestedField(
                field_id=21,
                name="tags",
                field_type=ice.ListType(
                    element_id=22, element_type=ice.StringType(), element_required=False
                ),
            ),
        ),
    ),
    NestedField(
        field_id=5,
        name="counts",
        field_type=ice.MapType(
            key_id=23,
            key_type=ice.StringType(),
            value_id=24,
            value_type=ice.LongType(),
            value_required=False,
        ),
    ),
    NestedField(field_id=6, name="amount", field_type=ice.DecimalType(12, 3)),
    NestedField(field_id=7, name="key", field_type=ice.UUIDType()),
    NestedField(field_id=8, name="data", field_type=ice.BinaryType()),
    NestedField(field_id=9, name="day", field_type=ice.DateType()),
    NestedField(field_id=10, name="at", field_type=ice.TimestamptzType()),
    NestedField(field_id=11, name="flag", field_type=ice.BooleanType()),
)
JOINED = 400
"""Rows of the file with four column files; a file of fifty rows is plain, as many are in one
with a single column file."""
DELETED = frozenset([0, 3, 4, 77, 130, *range(200, 240), 399, 420])


def _row(id: int, seed: int) -> Row:
    """Values that follow from numbers; every eleventh is null, in other rows for each column."""
    mark = id * 7 + seed * 1000
    row: Row = {
        "price": mark / 4,
        "name": f"n{mark}",
        "place": {"x": mark, "tags": [f"t{mark}", None][: id % 3]},
        "counts": {f"k{n}": mark + n for n in range(id % 4)},
        "amount": (Decimal(mark) / 8).quantize(Decimal("0.001")),
        "key": uuid.UUID(int=mark),
        "data": mark.to_bytes(4, "big"),
        "day": date(2020, 1, 1) + timedelta(days=mark % 3000),
        "at": datetime(2020, 1, 1, tzinfo=UTC) + timedelta(minutes=mark),
        "flag": mark % 2 == 0,
    }
    nulls = {name: None for at, name in enumerate(row) if (id + at + seed) % 11 == 0}
    return {"id": id, **row, **nulls}


def made(catalog: frazil.Catalog, name: str) -> tuple[frazil.Table, list[Row]]:
    """The table, and its rows by id."""
    small = {"write.parquet.row-group-limit": "90", "write.parquet.page-row-limit": "10"}
    table = catalog.create_table(name, SCHEMA, properties=small)
    old = [_row(id, 0) for id in range(JOINED)]
    table.append(old)
    table.append([_row(id, 0) for id in range(JOINED, JOINED + 50)])
    groups = {("price", "name"): 17, ("place", "counts"): 400, ("key",): 90, ("data", "flag"): 3}
    new = [_row(id, 1) for id in range(JOINED)]
    for names, group_rows in groups.items():
        _column_file(table, new, names, group_rows)
    # New prices leave the file of prices and names with names alone.
    newer = [{**row, "price": None if row["price"] is None else -row["price"]} for row in new]
    _column_file(table, newer, ("price",), 100)
    renewed = [name for names in groups for name in names]
    rows = [
        {**before, **{name: after[name] for name in renewed}}
        for before, after in zip(old, newer, strict=True)
    ]
    rows += [_row(id, 0) for id in range(JOINED, JOINED + 50)]
    table.delete(f"id in ({', '.join(map(str, DELETED))})")
    with table.evolve_schema() as columns:
        columns.add_column("late", "long", default=42)
        columns.rename_column("name", "title")
    rows += [_row(id, 3) for id in range(JOINED + 50, JOINED + 100)]
    for row in rows:
        row["title"], row["late"] = row.pop("name"), 42
    table.append(rows[JOINED + 50 :])
    table.update({"late": frazil.expr("id * 2")}, f"id >= {JOINED + 50}", mode="columns")
    for row in rows[JOINED + 50 :]:
        row["late"] = row["id"] * 2
    return table, [row for row in rows if row["id"] not in DELETED]


def _column_file(
    table: frazil.Table, rows: list[Row], names: tuple[str, ...], group_rows: int
) -> None:
    """A file of these columns of the first data file; deleted rows have nulls."""
    fields = [field for field in table.metadata.schema().fields if field.name in names]
    arrow = parquet_schema(Schema(*fields))
    columns = [[None if row["id"] in DELETED else row[f.name] for row in rows] for f in fields]
    data = pa.Table.from_arrays(
        [_array(values, field.type) for values, field in zip(columns, arrow, strict=True)],
        schema=arrow,
    )
    (first, *_) = sorted(live(table.refresh()), key=lambda entry: entry["tracking"]["first_row_id"])
    kept = tuple(file["location"] for file in first.get("column_files") or ())
    ids = tuple(field.field_id for field in fields)
    stale = frozenset(Schema(*fields).field_ids)
    commit_file(table, data, ids=ids, row_group_size=group_rows, kept=kept, stats_ids=stale)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if not isinstance(kind, pa.UuidType):
        return pa.array(values, kind)
    stored = [value and value.bytes for value in values]
    return pa.ExtensionArray.from_storage(kind, pa.array(stored, kind.storage_type))


Check = Callable[[Row], bool]
FILTERS: dict[str, Check] = {
    "id BETWEEN 95 AND 133": lambda row: 95 <= row["id"] <= 133,
    "id IN (2, 88, 180, 398, 451)": lambda row: row["id"] in (2, 88, 180, 398, 451),
    "price = -251.75": lambda row: row["price"] == -251.75,
    "price = 1.75": lambda row: row["price"] == 1.75,
    "price IS NULL": lambda row: row["price"] is None,
    "title = 'n1700' OR id = 7": lambda row: row["title"] == "n1700" or row["id"] == 7,
    "id > 90 AND price < -600": lambda row: (
        row["id"] > 90 and row["price"] is not None and row["price"] < -600
    ),
    "id >= 300 AND flag": lambda row: row["id"] >= 300 and bool(row["flag"]),
    "place.x > 3500 AND id < 380": lambda row: (
        row["place"] is not None and row["place"]["x"] > 3500 and row["id"] < 380
    ),
    "late = 42 AND day IS NULL": lambda row: row["late"] == 42 and row["day"] is None,
    "late > 900 AND id < 470": lambda row: row["late"] > 900 and row["id"] < 470,
    "amount > 20 AND id % 50 = 1": lambda row: (
        row["amount"] is not None and row["amount"] > 20 and row["id"] % 50 == 1
    ),
}
COLUMNS = (
    "*",
    "id, price",
    "price, title",
    "place.x AS x, id, counts",
    "key, late, at, _pos, _row_id",
    "title, place.tags AS tags",
)


def expected(rows: list[Row], columns: str) -> Iterator[Row]:
    """What a query of these columns gives."""
    names = {
        "*": [*(name for name in rows[0] if name != "late"), "late"] if rows else [],
        "place.x AS x": ["x"],
        "place.tags AS tags": ["tags"],
    }
    for row in rows:
        place = row["place"] or {}
        first = next(start for start in (450, 400, 0) if row["id"] >= start)
        whole = {**row, "x": place.get("x"), "tags": place.get("tags")}
        whole |= {"_pos": row["id"] - first, "_row_id": row["id"]}
        wanted = [name for part in columns.split(", ") for name in names.get(part, [part])]
        yield {name: whole[name] for name in wanted}


def seen(frame: Any) -> list[Row]:
    """The rows of a frame as Python has them."""
    return list(frame.toArrow().to_pylist())


def by_text(rows: list[Row]) -> list[str]:
    """Rows in an order of their own, to compare what has none."""
    return sorted(
        repr(sorted((name, _comparable(name, value)) for name, value in row.items()))
        for row in rows
    )


def _comparable(name: str, value: Any) -> Any:
    """Maps come as pairs, keys as texts or bytes, and times with the zone of the session."""
    if name == "counts" and value is not None:
        return dict(value)
    if name == "key" and isinstance(value, bytes):
        return str(uuid.UUID(bytes=value))
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return str(value) if isinstance(value, uuid.UUID) else value


def is_through_python(frame: Any) -> bool:
    """Whether Spark gets the rows from Frazil's reader."""
    return "FetchedScan" in frame._jdf.queryExecution().toString()


def _all(_: Row) -> bool:
    return True


def mistakes(spark: Any, table: str, rows: list[Row]) -> list[str]:
    """Queries of a registered table that do not give what the model says."""
    wrong = []
    for columns, where in [
        *(("*", where) for where in FILTERS),
        *(
            (columns, where)
            for columns in COLUMNS
            for where in ("true", "id > 90 AND price < -600")
        ),
    ]:
        fits = FILTERS.get(where, _all)
        query = f"SELECT {columns} FROM {table} WHERE {where}"
        frame = spark.sql(query)
        model = list(expected([row for row in rows if fits(row)], columns))
        if by_text(seen(frame)) != by_text(model):
            wrong.append(query)
        if is_through_python(frame):
            wrong.append(f"through Python: {query}")
    return wrong
