"""Columns of variants: written from Python and SQL, read with DuckDB and back, kept by changes."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg import types as ice
from pyiceberg.expressions import EqualTo
from pyiceberg.schema import Schema

import frazil
from frazil.errors import InvalidInput, Unsupported

SCHEMA = Schema(
    ice.NestedField(1, "id", ice.LongType(), False),
    ice.NestedField(2, "v", frazil.VariantType(), False),
)
DOCUMENTS: dict[int, Any] = {
    1: {"price": 5, "name": "pen", "tags": ["a", {"b": [None, True]}]},
    2: {"price": 7.5, "name": None, "größe": {}},
    3: [],
    4: "a text that is longer than the sixty-three bytes that a short string of a variant takes",
    5: None,
    6: False,
    7: Decimal("-12345678901234567890.123"),
    8: dt.date(1066, 10, 14),
    9: dt.datetime(2026, 1, 2, 3, 4, 5, 6),
    10: dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.UTC),
    11: dt.time(23, 59, 59, 999_999),
    12: b"\x00\xff",
    13: uuid.UUID(int=7),
    14: np.datetime64("2026-01-02T03:04:05.123456789"),
    15: -(1 << 62),
    16: {f"field {number}": number for number in range(300)},
}
ROWS = [{"id": id, "v": document} for id, document in DOCUMENTS.items()]


@pytest.fixture
def table(catalog: frazil.Catalog) -> frazil.Table:
    made = catalog.create_table("shop.t", SCHEMA)
    made.append(ROWS)
    return made


def by_id(rows: Any) -> dict[int, Any]:
    return {row["id"]: row["v"] for row in rows.to_pylist()}


def local_files(table: frazil.Table) -> list[str]:
    return [path.removeprefix("file://") for path in table.inspect.files["file_path"].to_pylist()]


def test_python_values_come_back(catalog: frazil.Catalog, table: frazil.Table) -> None:
    assert by_id(table.scan()) == DOCUMENTS
    assert by_id(catalog.sql("SELECT * FROM shop.t")) == DOCUMENTS
    assert {row["id"]: row["v"] for row in table.scan()} == DOCUMENTS
    columns = {"id": [20], "v": [{"a": (1, 2)}]}
    table.append(columns)
    assert by_id(table.scan("id = 20")) == {20: {"a": [1, 2]}}


def test_files_have_parquets_own_type_and_duckdb_reads_them(table: frazil.Table) -> None:
    (file,) = local_files(table)
    schema = pq.ParquetFile(file).schema
    assert "group field_id=2 v (Variant(1))" in str(schema)
    read = duckdb.sql(f"SELECT id, v FROM '{file}'")
    assert [str(kind) for kind in read.types] == ["BIGINT", "VARIANT"]
    # Python's client of DuckDB shows moments in its own zone, and cuts nanoseconds.
    found = dict(read.filter("id NOT IN (10, 14)").fetchall())
    assert found == {id: DOCUMENTS[id] for id in DOCUMENTS if id not in (10, 14)}
    prices = duckdb.sql(f"SELECT id FROM '{file}' WHERE TRY_CAST(v.price AS DOUBLE) > 6").fetchall()
    assert prices == [(2,)]


def test_changes_of_other_columns_keep_every_byte(
    catalog: frazil.Catalog, table: frazil.Table
) -> None:
    null = {"metadata": b"\x01\x00\x00", "value": b"\x00"}  # not the same as no value
    arrow = table.scan().to_arrow().schema
    table.append(pa.Table.from_pylist([{"id": 17, "v": null}], schema=arrow))
    before = {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}
    assert (before[17], before[5]) == (null, None)
    first = table.current_snapshot()
    assert first is not None
    catalog.sql("UPDATE shop.t SET id = id + 100 WHERE id > 2")
    catalog.sql(
        "MERGE INTO shop.t t USING (SELECT 102 AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET id = 3 WHEN NOT MATCHED THEN INSERT (id) VALUES (0)"
    )
    table = catalog.load_table("shop.t")
    table.update({"id": frazil.expr("id - 100")}, "id > 102", mode="columns")
    table.delete("id = 1")
    table.compact()
    after = {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}
    assert after.pop(0) is None
    assert {id: after[id]["value"] for id in (2, 4, 7, 17)} == {
        id: before[id]["value"] for id in (2, 4, 7, 17)
    }
    del before[1]
    assert set(after) == set(before)
    assert (after[17], after[5]) == (null, None)
    values = by_id(table.scan("id < 17 and id > 0"))
    assert values == {id: DOCUMENTS[id] for id in DOCUMENTS if id > 1}
    assert by_id(table.scan(as_of=first.snapshot_id, where="id < 17")) == DOCUMENTS


def test_sql_makes_and_changes_variants(catalog: frazil.Catalog) -> None:
    catalog.sql("CREATE TABLE shop.s (id INT, v VARIANT, l VARIANT[], s STRUCT(x VARIANT))")
    catalog.sql(
        """INSERT INTO shop.s VALUES (1, '{"a": [1, {"b": 2}]}'::JSON::VARIANT, [1::VARIANT], NULL),
        (2, 7, NULL, {'x': 'text'::VARIANT}), (3, NULL, [], {'x': NULL})"""
    )
    catalog.sql("UPDATE shop.s SET v = {'was': v}::VARIANT, s = {'x': 1::VARIANT} WHERE id = 2")
    assert catalog.sql("SELECT * FROM shop.s ORDER BY id").to_pylist() == [
        {"id": 1, "v": {"a": [1, {"b": 2}]}, "l": [1], "s": None},
        {"id": 2, "v": {"was": 7}, "l": None, "s": {"x": 1}},
        {"id": 3, "v": None, "l": [], "s": {"x": None}},
    ]
    catalog.sql("CREATE TABLE shop.copy AS SELECT id, v.a AS part FROM shop.s")
    copy = catalog.load_table("shop.copy")
    assert str(copy.schema.find_type("part")) == "variant"
    assert copy.scan("part is not null").to_pylist() == [{"id": 1, "part": [1, {"b": 2}]}]
    catalog.sql("ALTER TABLE shop.copy ADD COLUMN more VARIANT")
    assert copy.refresh().scan("id = 1").to_pylist()[0]["more"] is None
    described = catalog.sql("DESCRIBE shop.copy").to_pylist()
    assert [row["data_type"] for row in described] == ["int", "variant", "variant"]


def test_arrow_that_says_variant_makes_such_columns(
    catalog: frazil.Catalog, table: frazil.Table
) -> None:
    copy = catalog.create_table("shop.copy", table.scan().to_arrow())
    assert str(copy.schema.find_type("v")) == "variant"
    assert by_id(copy.scan()) == DOCUMENTS
    made = duckdb.sql("SELECT 1::BIGINT AS id, {'a': 1, 'd': DATE '2026-01-02'}::VARIANT AS v")
    other = catalog.create_table("shop.other", made.to_arrow_table())
    assert by_id(other.scan()) == {1: {"a": 1, "d": dt.date(2026, 1, 2)}}
    plain = pa.table({"id": [2], "v": [[1, 2]]})  # values of other types are encoded
    other.append(plain)
    assert by_id(other.scan("id = 2")) == {2: [1, 2]}


def _shredded(folder: Path, select: str, name: str = "shredded") -> str:
    path = str(folder / f"{name}.parquet")
    duckdb.sql(f"COPY ({select}) TO '{path}'")
    return path


def test_files_that_duckdb_shredded_are_read_whole(catalog: frazil.Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("shop.t", SCHEMA)
    path = _shredded(
        tmp_path,
        """SELECT i AS id, CASE i % 4
            WHEN 0 THEN {'price': i::INT, 'name': 'n' || i, 'd': DATE '2026-01-02', 'f': 1.5::FLOAT,
                         'dec': 1.25::DECIMAL(10, 2), 'at': TIMESTAMP '2026-01-02 03:04:05',
                         'in': {'q': [i, i + 1], 'l': [{'z': i}]}, 'u': uuid()}::VARIANT
            WHEN 1 THEN {'price': 'dear', 'other': [i]}::VARIANT
            WHEN 2 THEN NULL ELSE i::VARIANT END AS v FROM range(40) r(i)""",
    )
    assert "typed_value" in str(pq.ParquetFile(path).schema)
    table.add_files([path])
    expected = dict(duckdb.sql(f"SELECT id, v FROM '{path}'").fetchall())
    assert by_id(table.scan()) == expected
    assert by_id(catalog.sql("SELECT id, v FROM shop.t")) == expected
    catalog.sql("UPDATE shop.t SET id = id + 100 WHERE id >= 8")
    table = catalog.load_table("shop.t")
    table.compact()
    moved = {id + 100 if id >= 8 else id: value for id, value in expected.items()}
    assert by_id(table.scan()) == moved


def test_shredding_keeps_types_and_what_does_not_fit(
    catalog: frazil.Catalog, tmp_path: Path
) -> None:
    """A file laid out by hand, after the specification's example of a partly shredded object."""
    number = pa.struct([("value", pa.binary()), ("typed_value", pa.int16())])
    parts = pa.struct(
        [
            pa.field("metadata", pa.binary(), nullable=False),
            pa.field("value", pa.binary()),
            pa.field("typed_value", pa.struct([pa.field("a", number, nullable=False)])),
        ]
    )
    names = b"\x01\x02\x00\x01\x02ab"
    nothing = {"value": None, "typed_value": None}
    rows = [
        {"metadata": names, "value": None, "typed_value": {"a": {**nothing, "typed_value": 5}}},
        # {"b": true}, and a is missing
        {"metadata": names, "value": b"\x02\x01\x01\x00\x01\x04", "typed_value": {"a": nothing}},
        # a is the string "x"
        {"metadata": names, "value": None, "typed_value": {"a": {**nothing, "value": b"\x05x"}}},
        # a is null, the value
        {"metadata": names, "value": None, "typed_value": {"a": {**nothing, "value": b"\x00"}}},
        # no object: the number 1
        {"metadata": names, "value": b"\x0c\x01", "typed_value": None},
        None,
    ]
    ids = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
    column = pa.field("v", parts, metadata={"PARQUET:field_id": "2"})
    file = tmp_path / "by_hand.parquet"
    data = pa.Table.from_arrays(
        [pa.array(range(6)), pa.array(rows, parts)], schema=pa.schema([ids, column])
    )
    pq.write_table(data, file)
    table = catalog.create_table("shop.t", SCHEMA)
    table.add_files([str(file)])
    assert by_id(table.scan()) == {0: {"a": 5}, 1: {"b": True}, 2: {"a": "x"}, 3: {"a": None}} | {
        4: 1,
        5: None,
    }
    values = [row and row["value"] for row in table.scan().to_arrow()["v"].to_pylist()]
    # An object of one name, number 0, and the value 5 in two bytes, as it was shredded.
    assert values[0] == b"\x02\x01\x00\x00\x03\x10\x05\x00"
    assert values[1] == b"\x02\x01\x01\x00\x01\x04"


def test_what_variants_cannot_be_is_refused_by_name(
    catalog: frazil.Catalog, table: frazil.Table
) -> None:
    with pytest.raises(InvalidInput, match="'v', a variant"):
        catalog.create_table("shop.p", SCHEMA, partition_by=["v"])
    with pytest.raises(InvalidInput, match=r"'v'.*a variant"):
        catalog.create_table("shop.p", SCHEMA, partition_by=["bucket[4](v)"])
    with pytest.raises(InvalidInput, match="'v', a variant"):
        catalog.create_table("shop.p", SCHEMA, sort_by=["v"])
    with pytest.raises(InvalidInput, match="variant; only IS NULL"):
        table.scan(EqualTo("v", 5)).to_arrow()  # type: ignore[call-arg, arg-type]
    with pytest.raises(InvalidInput, match="a variant has no default but null"):
        catalog.sql("ALTER TABLE shop.t ADD COLUMN w VARIANT DEFAULT 5")
    with pytest.raises(InvalidInput, match="a map with variants as keys"):
        catalog.sql("CREATE TABLE shop.m (m MAP(VARIANT, INT))")
    with pytest.raises(Unsupported, match=r"published as v2.*variant"):
        table.publish(format_version=2)
    with pytest.raises(Unsupported, match="variant, which PyIceberg cannot open"):
        frazil.to_pyiceberg(table)
    with pytest.raises(InvalidInput, match=r"not a variant value|column 'v'"):
        table.append([{"id": 1, "v": object()}])
    with pytest.raises(InvalidInput, match="column 'v'"):
        table.append([{"id": 1, "v": {1: 2}}])
    assert by_id(table.refresh().scan()) == DOCUMENTS
    assert catalog.list_tables("shop") == ["shop.t"]


def test_a_published_table_is_v3_and_is_upgraded_again(
    catalog: frazil.Catalog, table: frazil.Table
) -> None:
    published = table.publish()
    other = catalog.register_table("shop.other", published.metadata_location)
    assert other.metadata.format_version == 3
    assert by_id(other.scan()) == DOCUMENTS
    other.upgrade()
    other.append([{"id": 50, "v": {"new": 1}}])
    assert by_id(other.scan()) == {**DOCUMENTS, 50: {"new": 1}}


def test_deletes_of_equal_rows_and_feeds_compare_variants(
    catalog: frazil.Catalog, table: frazil.Table
) -> None:
    catalog.sql("UPDATE shop.t SET v = v WHERE id = 1")
    catalog.sql("UPDATE shop.t SET v = 'new'::VARIANT WHERE id = 2")
    table = catalog.load_table("shop.t")
    feed = table.changes().to_arrow().to_pylist()
    assert {row["id"] for row in feed} >= {1, 2}
    found = catalog.sql("SELECT count(DISTINCT v) AS n FROM shop.t").to_pylist()
    assert found == [{"n": len(DOCUMENTS) - 1}]


def test_python_values_are_assigned_and_upserted(catalog: frazil.Catalog) -> None:
    catalog.sql("CREATE TABLE shop.u (id INT, v VARIANT, s STRUCT(x VARIANT), l VARIANT[])")
    table = catalog.load_table("shop.u")
    table.append([{"id": id, "v": id, "s": {"x": id}} for id in range(4)])
    table.update({"v": {"k": [1, "a", None, dt.date(2026, 1, 2)]}}, "id = 0")
    table.update({"v": "text", "s": {"x": {"deep": Decimal("1.5")}}, "l": [1, {"a": 2}]}, "id = 1")
    table.update({"v": None}, "id = 2")
    more = {"s": None, "l": None}
    table.upsert([{"id": 3, "v": [3], **more}, {"id": 4, "v": {"n": 4}, **more}], on=["id"])
    assert sorted(table.scan().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 0, "v": {"k": [1, "a", None, dt.date(2026, 1, 2)]}, "s": {"x": 0}, "l": None},
        {"id": 1, "v": "text", "s": {"x": {"deep": Decimal("1.5")}}, "l": [1, {"a": 2}]},
        {"id": 2, "v": None, "s": {"x": 2}, "l": None},
        {"id": 3, "v": [3], "s": None, "l": None},
        {"id": 4, "v": {"n": 4}, "s": None, "l": None},
    ]
    with pytest.raises(InvalidInput, match="key column v is or has a variant"):
        table.upsert([{"id": 1, "v": 1, **more}], on=["v"])
    with pytest.raises(InvalidInput, match="column 'v'"):
        table.update({"v": object()}, "id = 0")
