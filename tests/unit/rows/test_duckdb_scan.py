"""Scans as DuckDB relations: the rows of Frazil's own reader, wherever DuckDB alone would err."""

from __future__ import annotations

import gc
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg import types as ice
from pyiceberg.expressions import EqualTo, Reference, StartsWith
from pyiceberg.expressions.literals import literal
from pyiceberg.schema import Schema

import frazil
from frazil.errors import Unsupported
from frazil.rows.actions import KEY
from frazil.rows.duckdb.duckdb_connection import connect
from frazil.rows.duckdb.duckdb_scan import scan_sql
from frazil.rows.planned import Planned
from tests.support.values import canonical_rows

METADATA = ("_file", "_pos", "_row_id", "_last_updated_sequence_number", "_partition", "_spec_id")
SIMPLE = pa.schema([pa.field("id", pa.int64()), pa.field("t", pa.string())])


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[frazil.Catalog]:
    with frazil.connect(tmp_path / "warehouse") as opened:
        yield opened


def rows(first: int, last: int) -> pa.Table:
    ids = range(first, last)
    return pa.table({"id": list(ids), "t": [f"t{i}" for i in ids]}, schema=SIMPLE)


def by_duckdb(scan: frazil.Scan) -> list[Any]:
    return canonical_rows(scan.to_duckdb().to_arrow_table())


def uses_arrow(scan: frazil.Scan) -> bool:
    return any(name.endswith("_arrow") for name in scan_sql(Planned.of(scan)).relations)


def test_deleted_and_updated_rows_and_metadata_columns(catalog: frazil.Catalog) -> None:
    table = catalog.create_table("s.t", SIMPLE, partition_by=["bucket(2, id)"])
    table.append(rows(0, 40))
    table.append(rows(40, 60))
    table.delete("id in (3, 4, 41)")
    table.update({"t": "new"}, where="id = 7")
    scan = table.scan(columns=["t", "id", *METADATA])
    assert not uses_arrow(scan)
    assert by_duckdb(scan) == canonical_rows(scan.to_arrow())
    found = scan.to_duckdb().project("id").fetchall()
    assert sorted(found) == [(i,) for i in range(60) if i not in (3, 4, 41)]


def test_filters_limits_and_columns_apply(catalog: frazil.Catalog) -> None:
    table = catalog.create_table("s.t", SIMPLE)
    table.append(rows(0, 20))
    found = table.scan("id > 16 and t starts with 't1'", ["t"]).to_duckdb()
    assert sorted(found.fetchall()) == [("t17",), ("t18",), ("t19",)]
    assert found.columns == ["t"]
    assert len(table.scan(limit=3).to_duckdb().fetchall()) == 3
    assert table.scan("id = 99").to_duckdb().fetchall() == []


def test_a_relation_outlives_its_connection_and_can_be_read_again(catalog: frazil.Catalog) -> None:
    table = catalog.create_table("s.t", SIMPLE)
    table.append(rows(0, 5))
    table.delete("id = 2")
    relation = table.scan().to_duckdb()
    gc.collect()
    assert relation.aggregate("count(*)").fetchall() == [(4,)]
    assert relation.aggregate("sum(id)").fetchall() == [(8,)]


def test_a_name_makes_a_view_on_the_given_connection(catalog: frazil.Catalog) -> None:
    table = catalog.create_table("s.t", SIMPLE)
    table.append(rows(0, 5))
    connection = duckdb.connect()
    table.scan().to_duckdb("numbers", connection)
    query = "SELECT count(*) FROM numbers a JOIN numbers b USING (id)"
    assert connection.sql(query).fetchall() == [(5,)]


def test_attached_rows_can_be_released(catalog: frazil.Catalog) -> None:
    table = catalog.create_table("s.t", SIMPLE)
    table.append(rows(0, 5))
    table.delete("id = 2")
    connection = connect()
    attached = scan_sql(Planned.of(table.scan()), key=True)
    attached.bind(connection)
    attached.create_view(connection, "numbers")
    query = f"SELECT id, {KEY} FROM numbers ORDER BY 1"
    assert connection.sql(query).fetchall() == [(0, 0), (1, 1), (3, 3), (4, 4)]
    attached.release(connection)
    connection.execute("DROP VIEW numbers")
    assert connection.sql("SHOW TABLES").fetchall() == []


def test_an_empty_table_has_its_columns(catalog: frazil.Catalog) -> None:
    relation = catalog.create_table("s.t", SIMPLE).scan().to_duckdb()
    assert (relation.columns, relation.fetchall()) == (["id", "t"], [])


def test_every_column_type_and_default_is_read_as_stored(catalog: frazil.Catalog) -> None:
    values: list[tuple[ice.IcebergType, Any]] = [
        (ice.BooleanType(), True),
        (ice.IntegerType(), -(2**31)),
        (ice.LongType(), 2**63 - 1),
        (ice.FloatType(), 1.5),
        (ice.DoubleType(), -2.5),
        (ice.DecimalType(38, 4), Decimal("-1234567890123456789012345678901234.5678")),
        (ice.DecimalType(9, 0), Decimal("1E+3")),
        (ice.DateType(), date(1931, 5, 6)),
        (ice.TimeType(), time(23, 59, 59, 999_999)),
        (ice.TimestampType(), datetime(1969, 12, 31, 23, 59, 59, 1)),
        (ice.TimestamptzType(), datetime(1901, 2, 3, 4, 5, 6, 7, UTC)),
        (ice.StringType(), "it's 'quoted' \\x00 ✓"),
        (ice.UUIDType(), uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")),
        (ice.BinaryType(), b"\x00'\\\xff"),
        (ice.FixedType(3), b"\x00\x01\xff"),
    ]
    schema = Schema(ice.NestedField(1, "id", ice.LongType()))
    table = catalog.create_table("s.t", schema)
    table.append([{"id": 1}])
    with table.evolve_schema() as change:
        for at, (kind, value) in enumerate(values):
            change.add_column(f"c{at}", kind, default=value)
    named = {f"c{at}": value for at, (_, value) in enumerate(values)}
    table.append([{"id": 2, **named}])
    table.append([{"id": 3, **dict.fromkeys(named)}])
    scan = table.scan()
    assert not uses_arrow(scan)
    assert by_duckdb(scan) == canonical_rows(scan.to_arrow())
    for number in (1, 2):
        (found,) = table.scan(f"id = {number}").to_duckdb().to_arrow_table().to_pylist()
        assert found == {"id": number, **named}


@pytest.mark.parametrize("value", [np.datetime64("2024-01-02T03:04:05.123456789", "ns")])
def test_nanoseconds_keep_their_digits(catalog: frazil.Catalog, value: Any) -> None:
    table = catalog.create_table("s.t", pa.schema([pa.field("n", pa.timestamp("ns"))]))
    table.append(pa.table({"n": pa.array([value])}))
    found = table.scan().to_duckdb().to_arrow_table().column("n").cast(pa.int64()).to_pylist()
    assert found == [1704164645123456789]


def test_zoned_nanoseconds_are_refused_only_where_they_are_read(catalog: frazil.Catalog) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("n", pa.timestamp("ns", "UTC"))])
    table = catalog.create_table("s.t", schema)
    table.append(pa.table({"id": [1], "n": [datetime(2024, 1, 1, tzinfo=UTC)]}, schema=schema))
    with pytest.raises(Unsupported, match=r"column n is a timestamptz_ns"):
        table.scan().to_duckdb()
    assert table.scan(columns=["id"]).to_duckdb().fetchall() == [(1,)]


def test_columns_are_found_by_id_after_every_kind_of_evolution(catalog: frazil.Catalog) -> None:
    schema = pa.schema(
        [
            pa.field("a", pa.int32()),
            pa.field("b", pa.float32()),
            pa.field("c", pa.decimal128(5, 2)),
            pa.field("d", pa.string()),
        ]
    )
    table = catalog.create_table("s.t", schema)
    old = {"a": [1], "b": [1.5], "c": [Decimal("1.25")], "d": ["old"]}
    table.append(pa.table(old, schema=schema))
    with table.evolve_schema() as change:
        change.update_column("a", ice.LongType())
        change.update_column("b", ice.DoubleType())
        change.update_column("c", ice.DecimalType(12, 2))
        change.drop_column("d")
    with table.evolve_schema() as change:
        change.add_column("d", ice.StringType())
        change.rename_column("a", "e")
        change.move("c", first=True)
    table.append([{"e": 2**40, "b": 0.1, "c": Decimal("1234567890.12"), "d": "new"}])
    scan = table.scan()
    assert not uses_arrow(scan)
    assert sorted(scan.to_duckdb().fetchall()) == [
        (Decimal("1.25"), 1, 1.5, None),
        (Decimal("1234567890.12"), 2**40, 0.1, "new"),
    ]


def test_a_renamed_part_of_a_struct_is_not_null(catalog: frazil.Catalog) -> None:
    address = pa.struct([pa.field("city", pa.string()), pa.field("zip", pa.int32())])
    table = catalog.create_table("s.t", pa.schema([pa.field("address", address)]))
    table.append([{"address": {"city": "Rome", "zip": 1}}])
    assert not uses_arrow(table.scan())
    with table.evolve_schema() as change:
        change.rename_column("address.city", "town")
    table.append([{"address": {"town": "Oslo", "zip": 2}}])
    scan = table.scan()
    assert uses_arrow(scan)
    assert by_duckdb(scan) == canonical_rows(scan.to_arrow())
    found = scan.to_duckdb().project("address.town").fetchall()
    assert sorted(found) == [("Oslo",), ("Rome",)]


def test_a_part_whose_name_was_another_part_before_is_read_by_id(catalog: frazil.Catalog) -> None:
    pair = pa.struct([pa.field("x", pa.int64()), pa.field("y", pa.int64())])
    table = catalog.create_table("s.t", pa.schema([pa.field("p", pair)]))
    table.append([{"p": {"x": 1, "y": 2}}])
    with table.evolve_schema() as change:
        change.drop_column("p.x")
    with table.evolve_schema() as change:
        change.add_column("p.x", ice.LongType())
    assert table.scan().to_duckdb().project("p.x, p.y").fetchall() == [(None, 2)]


def test_nested_columns_are_read_natively_and_filtered_inside(catalog: frazil.Catalog) -> None:
    schema = pa.schema(
        [
            pa.field("s", pa.struct([pa.field("n", pa.int64()), pa.field("t", pa.string())])),
            pa.field("l", pa.list_(pa.struct([pa.field("q", pa.int32())]))),
            pa.field("m", pa.map_(pa.string(), pa.float64())),
        ]
    )
    table = catalog.create_table("s.t", schema)
    made = [
        {"s": {"n": i, "t": f"{i}"}, "l": [{"q": i}, None], "m": [("k", i / 2)]} for i in range(5)
    ]
    table.append(pa.Table.from_pylist([*made, {"s": None, "l": None, "m": None}], schema))
    scan = table.scan()
    assert not uses_arrow(scan)
    assert by_duckdb(scan) == canonical_rows(scan.to_arrow())
    found = table.scan("s.n >= 3").to_duckdb().project("s.t, l[1].q, m['k']")
    assert sorted(found.fetchall()) == [("3", 3, 1.5), ("4", 4, 2.0)]


def test_files_without_field_ids_keep_their_values(catalog: frazil.Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("s.t", SIMPLE)
    table.append(rows(0, 2))
    pq.write_table(rows(2, 4), tmp_path / "plain.parquet")
    table.add_files([f"file://{tmp_path}/plain.parquet"])
    assert sorted(table.scan().to_duckdb().fetchall()) == [(i, f"t{i}") for i in range(4)]


def test_names_are_not_patterns(tmp_path: Path) -> None:
    for name in ("b[x]", "bx", "c*", "cc"):
        with frazil.connect(tmp_path / name) as catalog:
            catalog.create_table("s.t", SIMPLE).append([{"id": 1, "t": name}])
    for name in ("b[x]", "bx", "c*", "cc"):
        with frazil.connect(tmp_path / name) as catalog:
            assert catalog.load_table("s.t").scan().to_duckdb().fetchall() == [(1, name)]


def test_equality_deletes_take_rows_away(catalog: frazil.Catalog) -> None:
    table = catalog.create_table("s.t", SIMPLE)
    table.append(rows(0, 4))
    table.set_properties({"write.equality-deletes.enabled": "true"})
    table.row_delta().add_equality_deletes(pa.table({"id": [2]}), on=["id"]).commit()
    table.append(rows(2, 3))
    planned = Planned.of(table.scan(columns=["id", "_pos"]))
    connection = connect()
    attached = scan_sql(planned, key=True)
    attached.bind(connection)
    attached.create_view(connection, "t")
    found = connection.sql(f"SELECT id, _pos, {KEY} FROM t ORDER BY {KEY}").fetchall()
    assert sorted((id, pos) for id, pos, _ in found) == [(0, 0), (1, 1), (2, 0), (3, 3)]
    assert len({key for *_, key in found}) == 4
    (deleted,) = planned.tasks(np.array([at for at in range(2) if at in planned.plan.matches]))
    assert deleted.deletes


def test_filters_mean_the_same_in_another_time_zone(catalog: frazil.Catalog) -> None:
    schema = pa.schema([pa.field("at", pa.timestamp("us", "UTC"))])
    table = catalog.create_table("s.t", schema)
    moments = [datetime(2024, 1, 1, hour, tzinfo=UTC) for hour in (0, 3, 12)]
    table.append(pa.table({"at": moments}, schema=schema))
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'America/New_York'")
    scan = table.scan("at >= '2024-01-01 03:00:00+00:00'")
    found = scan.to_duckdb(connection=connection).aggregate("count(*)")
    assert found.fetchall() == [(2,)]
    own = table.scan().to_duckdb("t")
    query = "SELECT count(*) FROM t WHERE \"at\" < TIMESTAMPTZ '2024-01-01 03:00:00'"
    assert own.query("t", query).fetchall() == [(1,)]


def test_uuids_leave_duckdb_as_uuids(catalog: frazil.Catalog) -> None:
    table = catalog.create_table("s.t", pa.schema([pa.field("u", pa.uuid())]))
    one = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
    table.append(pa.table({"u": pa.array([one.bytes], pa.uuid())}))
    found = table.scan(f"u = '{one}'").to_duckdb().to_arrow_table()
    assert found.schema.field("u").type == pa.uuid()
    assert found.column("u").to_pylist() == [one]


def test_columns_that_differ_in_case_are_refused(catalog: frazil.Catalog) -> None:
    schema = Schema(
        ice.NestedField(1, "a", ice.LongType()), ice.NestedField(2, "A", ice.LongType())
    )
    table = catalog.create_table("s.t", schema)
    table.append([{"a": 1, "A": 2}])
    with pytest.raises(Unsupported, match="cannot distinguish the columns a and A"):
        table.scan().to_duckdb()
    assert table.scan(columns=["A"]).to_duckdb().fetchall() == [(2,)]


def test_text_filters_take_any_character(catalog: frazil.Catalog) -> None:
    table = catalog.create_table("s.t", pa.schema([pa.field("t", pa.string())]))
    odd = ["it's", "a\0b", "a%b", "a_b", "a\\b", "é✓😀"]
    table.append(pa.table({"t": odd}))
    term = Reference("t")
    for value in odd:
        assert table.scan(EqualTo(term=term, value=literal(value))).to_duckdb().fetchall() == [
            (value,)
        ]
    found = table.scan(StartsWith(term=term, value=literal("a%"))).to_duckdb()
    assert found.fetchall() == [("a%b",)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x > 5", 2),
        ("x <> 1", 2),
        ("isnan(x)", 2),
        ("x = 'nan'::DOUBLE", 2),
        ("NOT (x < 5)", 2),
        ("x < 5", 3),
        ("x IS NULL", 1),
        ("s.y > 5", 2),
        ("s.y = 'nan'::DOUBLE", 2),
    ],
)
@pytest.mark.parametrize("through_arrow", [False, True])
def test_rows_with_nan_are_not_skipped_by_statistics(
    catalog: frazil.Catalog, condition: str, expected: int, through_arrow: bool
) -> None:
    inner = pa.struct([pa.field("y", pa.float64())])
    schema = pa.schema([pa.field("x", pa.float64()), pa.field("s", inner)])
    table = catalog.create_table("s.t", schema)
    nan = float("nan")
    table.append(pa.table({"x": [1.0, nan, None], "s": [{"y": 1.0}, {"y": nan}, None]}))
    table.append(pa.table({"x": [1.0, nan, 1.0], "s": [{"y": 1.0}, {"y": nan}, {"y": 1.0}]}))
    if through_arrow:
        with table.evolve_schema() as change:
            change.rename_column("s.y", "z")
        condition = condition.replace("s.y", "s.z")
    assert uses_arrow(table.scan()) == through_arrow
    found = table.scan().to_duckdb().filter(condition).aggregate("count(*)")
    assert found.fetchall() == [(expected,)]
