"""Tables that SQL creates and alters have the columns and types that plain DuckDB gives them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from frazil.errors import FrazilError
from tests.support.beside_duckdb import BesideDuckDb


@pytest.fixture
def db(tmp_path: Path) -> Iterator[BesideDuckDb]:
    with BesideDuckDb(tmp_path / "w") as made:
        yield made


@pytest.mark.parametrize(
    "kind",
    [
        *("DECIMAL", "NUMERIC", "DEC", "DECIMAL(7)", "DECIMAL(9, 2)", "DECIMAL[]"),
        *("STRUCT(a DECIMAL)", "MAP(VARCHAR, DECIMAL)", "TIMESTAMP", "DATETIME", "TIMESTAMP(6)"),
        *("TIMESTAMP(9)", "TIMESTAMP WITH TIME ZONE", "DOUBLE PRECISION", "VARCHAR(3)"),
        *("INT32", "SIGNED", "INTEGRAL", "INT64", "OID", "LOGICAL", "BPCHAR", "NVARCHAR", "GUID"),
        *("TIMESTAMP_US", "INT64[]"),
    ],
)
def test_a_type_is_the_one_that_duckdb_has_for_its_name(db: BesideDuckDb, kind: str) -> None:
    db.both(f"CREATE TABLE s.t (c {kind})", f"CREATE TABLE s.u AS SELECT CAST(NULL AS {kind}) AS c")
    db.both("CREATE TABLE s.v (a INTEGER)", f"ALTER TABLE s.v ADD COLUMN c {kind}")
    for table in ("s.t", "s.u", "s.v"):
        question = f"SELECT typeof(c) AS kind FROM (SELECT NULL AS n) LEFT JOIN {table} ON true"
        expected = db.plain.execute(question).fetchall()
        assert [tuple(row.values()) for row in db.session.sql(question).to_pylist()] == expected


@pytest.mark.parametrize(
    "statement",
    [
        'CREATE TABLE s.t(a, "B b") AS SELECT id, id + 1 FROM s.u',
        "CREATE TABLE s.t(a,) AS SELECT id + 2, id FROM s.u",
        "CREATE TABLE s.t (a INTEGER, b VARCHAR,)",
    ],
)
def test_columns_of_a_new_table_are_called_as_in_duckdb(db: BesideDuckDb, statement: str) -> None:
    db.both("CREATE TABLE s.u (id INTEGER)", "INSERT INTO s.u VALUES (1), (2)", statement)
    db.check("s.t")
    columns = [row[0] for row in db.plain.execute("DESCRIBE s.t").fetchall()]
    assert db.session.sql("FROM s.t").to_arrow().column_names == columns


def test_alter_table_ignores_the_case_of_columns(db: BesideDuckDb) -> None:
    db.both(
        'CREATE TABLE s.t ("Id" INTEGER NOT NULL, w VARCHAR, x INTEGER, "P" STRUCT("A" INTEGER))'
    )
    db.both("INSERT INTO s.t VALUES (1, 'a', 2, {'A': 3})")
    for change in (
        "DROP COLUMN X",
        "DROP COLUMN IF EXISTS X",
        'RENAME W TO "V"',
        "ALTER iD TYPE BIGINT",
    ):
        db.same(f"ALTER TABLE s.t {change}")
    assert db.session.sql("FROM s.t").columns == ["Id", "V", "P"]
    db.refused("ALTER TABLE s.t ADD COLUMN ID INTEGER")
    db.same("ALTER TABLE s.t ADD COLUMN IF NOT EXISTS ID INTEGER")
    db.same("ALTER TABLE s.t ALTER v SET DEFAULT 'z'")
    db.same("INSERT INTO s.t (iD) VALUES (4)")
    for change in (
        "ADD COLUMN y INT AFTER ID",
        "ADD COLUMN p.b INT AFTER a",
        "ALTER COLUMN V FIRST",
    ):
        db.session.sql(f"ALTER TABLE s.t {change}")
    assert db.session.sql("FROM s.t").columns == ["V", "Id", "y", "P"]
    assert db.session.sql("SELECT p FROM s.t WHERE id = 1").to_pylist() == [
        {"P": {"A": 3, "b": None}}
    ]
    db.session.sql("ALTER TABLE s.t SET IDENTIFIER FIELDS ID")
    schema = db.catalog.load_table("s.t").schema
    assert schema.identifier_field_names() == {"Id"}


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("CREATE TABLE s.t(a, b) AS SELECT 1", "2 columns are named, the query has 1"),
        ("CREATE TABLE s.t(a, A) AS SELECT 1, 2", "two columns A"),
        ("CREATE TABLE s.t(a, b)", "column a needs a type"),
        ("CREATE TABLE s.t(a INTEGER, b AS (a + 1))", "a table has no generated"),
        ("CREATE TABLE s.t AS SELECT NULL AS a", "'a' has no value to tell its type from"),
        ("CREATE TABLE s.t AS SELECT 1 AS a, [] AS b", "'b' has no value to tell its type from"),
        ("CREATE TABLE s.t AS SELECT MAP {} AS m", "'m' has no value to tell its type from"),
        ("CREATE TABLE s.t AS SELECT 1 AS a, row() AS e", "'e': a struct needs at least one field"),
        ("CREATE TABLE s.t (a STRUCT())", "expected"),
        ("CREATE TABLE s.t AS SELECT {'a': NULL} AS p", "'p' has no value to tell its type from"),
        ("CREATE TABLE s.t(a INT, b INT GENERATED ALWAYS AS (a))", "no generated columns"),
    ],
)
def test_columns_that_cannot_be_are_refused(db: BesideDuckDb, statement: str, problem: str) -> None:
    with pytest.raises(FrazilError, match=problem):
        db.session.sql(statement)
    assert not db.catalog.table_exists("s.t")


@pytest.mark.parametrize("value", ["1.2345", "'12.5'", "-0.0005", "123456789012345"])
def test_a_decimal_without_sizes_keeps_three_digits(db: BesideDuckDb, value: str) -> None:
    db.both("CREATE TABLE s.t (id INTEGER, c DECIMAL)", "CREATE TABLE s.u (id INTEGER, c DOUBLE)")
    db.both("INSERT INTO s.u VALUES (1, 2.5)")
    db.same(f"INSERT INTO s.t VALUES (1, {value}), (2, CAST({value} AS DECIMAL))")
    db.same(f"UPDATE s.t SET c = c + CAST({value} AS DECIMAL) / 7 WHERE id = 1")
    db.same(f"UPDATE s.t SET c = u.c * {value}::DECIMAL FROM s.u WHERE t.id = u.id")
    db.same(
        f"MERGE INTO s.t USING s.u ON t.id = u.id + 1 WHEN MATCHED THEN UPDATE SET c = u.c::DECIMAL"
        f" WHEN NOT MATCHED BY SOURCE THEN UPDATE SET c = CAST({value} AS NUMERIC)"
    )
    db.same(f"DELETE FROM s.t WHERE c = CAST({value} AS DECIMAL)")


@pytest.mark.parametrize("kind", ["TIMESTAMP(3)", "TIMESTAMP(0)", "TIME(3)", "DATETIME(12)"])
def test_sizes_of_times_are_not_passed_over(db: BesideDuckDb, kind: str) -> None:
    with pytest.raises(FrazilError, match=r"\(\d+\) is not a type of tables"):
        db.session.sql(f"CREATE TABLE s.t (c {kind})")


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        *(("DOUBLE", "1.5"), ("FLOAT", "-0.1"), ("DOUBLE", "'2.5'"), ("DECIMAL(10, 2)", "'1.25'")),
        *(("BIGINT", "1.0"), ("BIGINT", "'7'"), ("BOOLEAN", "'true'"), ("VARCHAR", "5")),
        *(("TIMESTAMP", "DATE '2024-01-01'"), ("BLOB", "'ab'"), ("INTEGER", "NULL")),
        *(("DATE", "'2024-02-29'"), ("UUID", "'00000000-0000-0000-0000-000000000001'")),
    ],
)
def test_a_default_is_cast_to_its_column(db: BesideDuckDb, kind: str, default: str) -> None:
    db.both(
        f"CREATE TABLE s.t (id INTEGER, a {kind} DEFAULT {default})",
        "INSERT INTO s.t (id) VALUES (1)",
        f"ALTER TABLE s.t ADD COLUMN b {kind} DEFAULT {default}",
        f"ALTER TABLE s.t ADD COLUMN c {kind}",
        f"ALTER TABLE s.t ALTER COLUMN c SET DEFAULT {default}",
        "INSERT INTO s.t (id) VALUES (2)",
    )
    db.check("s.t")


def test_a_default_that_its_column_cannot_hold_is_refused_at_its_place(db: BesideDuckDb) -> None:
    with pytest.raises(FrazilError, match="Could not convert string 'abc' to INT32") as caught:
        db.session.sql("CREATE TABLE s.t (a INTEGER DEFAULT 'abc')")
    assert caught.value.position == (1, 37)
    assert "exception_type" not in str(caught.value)
    db.both("CREATE TABLE s.t (a INTEGER)")
    with pytest.raises(FrazilError, match="'b'"):
        db.session.sql("ALTER TABLE s.t ALTER COLUMN b SET DEFAULT 1")
