"""Queries through `catalog.sql` and through DuckDB on the same rows: the same rows come back."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import frazil
from frazil.errors import FrazilError, InvalidInput
from frazil.sql.bind import bound_scans
from frazil.table.catalog import Catalog
from tests.support.beside_duckdb import BesideDuckDb

NAN = float("nan")
TABLES: dict[str, list[pa.Table]] = {
    "s.t": [
        pa.table({"a": [1, 2], "b": [10, 20]}),
        pa.table({"a": [10, None], "b": [1, 7]}),
        pa.table({"a": [9007199254740993], "b": [3]}),
    ],
    "r.t": [pa.table({"a": [2, 5], "b": [200, 500]})],
    "s.d": [pa.table({"a": [9007199254740992.0, NAN, 1.5], "n": [1, 2, 3]})],
    "s.dates": [
        pa.table({"d": pa.array([19723, None], pa.date32()), "k": [1, 2]}),
        pa.table({"d": pa.array([19800], pa.date32()), "k": [3]}),
    ],
    "s.texts": [pa.table({"d": ["2024-1-1", "2024-01-01"], "Mixed": [1, 2]})],
    "s.lists": [pa.table({"l": [[1, 2], [3]], "st": [{"BIT": 1, "t": 2}, {"BIT": 3, "t": 4}]})],
    "s.nulls": [
        pa.table({"k": [1, 2], "x": [1, None]}),
        pa.table({"k": [3], "x": [5]}),
        pa.table({"k": [4], "x": pa.array([None], pa.int64())}),
    ],
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Catalog, Any]]:
    engine = duckdb.connect()
    with frazil.connect(tmp_path_factory.mktemp("beside")) as catalog:
        for name, parts in TABLES.items():
            space, _, last = name.partition(".")
            engine.execute(f'CREATE SCHEMA IF NOT EXISTS "{space}"')
            whole = pa.concat_tables(parts)
            engine.register("rows", whole)
            engine.execute(f'CREATE TABLE "{space}"."{last}" AS SELECT * FROM rows')
            table = catalog.create_table(name, whole.schema)
            for part in parts:
                table.append(part)
        yield catalog, engine


def same(both: tuple[Catalog, Any], text: str) -> None:
    catalog, engine = both
    expected = engine.execute(text)
    names = [column[0] for column in expected.description]
    rows = expected.fetchall()
    result = catalog.sql(text).to_arrow()
    assert result.column_names == names
    got = list(zip(*(column.to_pylist() for column in result.columns), strict=True))
    assert shown(got) == shown(rows), text


def shown(rows: list[tuple[Any, ...]]) -> list[str]:
    """Rows to compare; sums of integers are decimals in Arrow."""
    plain = ((int(v) if isinstance(v, Decimal) else v for v in row) for row in rows)
    return sorted(repr(tuple(row)) for row in plain)


@pytest.mark.parametrize(
    "text",
    [
        # Renamed columns
        "WITH z(b, a) AS (SELECT a, b FROM s.t) SELECT * FROM z WHERE a = 10",
        "WITH z(b, a) AS (SELECT * FROM s.t) SELECT * FROM z WHERE a = 1",
        "WITH z(b) AS (SELECT a, b AS c FROM s.t) SELECT * FROM z WHERE b = 1",
        "SELECT * FROM (SELECT a, b FROM s.t) q(b, a) WHERE a = 10",
        "SELECT * FROM s.t q(b, a) WHERE a = 10",
        "SELECT * FROM s.t q(x) WHERE x = 10",
        "WITH z(b, a) AS (SELECT a, b FROM s.t UNION ALL SELECT b, a FROM r.t) "
        "SELECT * FROM z WHERE a = 10",
        "WITH z(a, b) AS (SELECT b, a FROM s.t), y AS (SELECT * FROM z WHERE a = 10) "
        "SELECT * FROM y WHERE b = 1",
        # Other types
        "SELECT * FROM (SELECT a FROM s.t UNION ALL SELECT a FROM s.d) WHERE a = 9007199254740993",
        "SELECT * FROM (SELECT a FROM s.d UNION ALL SELECT a FROM s.t) WHERE a = 9007199254740992",
        "SELECT * FROM (SELECT a FROM s.t EXCEPT SELECT a FROM s.d) WHERE a > 9007199254740992",
        "SELECT x.a, y.a FROM s.t x JOIN s.d y ON x.a = y.a WHERE x.a = 9007199254740993",
        "SELECT x.k FROM s.dates x JOIN s.texts y ON x.d = y.d WHERE y.d = '2024-1-1'",
        "SELECT x.k FROM s.dates x JOIN s.texts y ON x.d = y.d WHERE x.d = '2024-01-01'",
        # One name in two namespaces
        "SELECT a FROM s.t WHERE EXISTS (SELECT 1 FROM r.t WHERE r.t.a = s.t.a)",
        "SELECT a FROM s.t WHERE NOT EXISTS (SELECT 1 FROM r.t WHERE r.t.a = s.t.a)",
        "SELECT s.t.b, r.t.b AS c FROM s.t JOIN r.t ON s.t.a = r.t.a",
        "SELECT * FROM s.t JOIN r.t USING (a)",
        "SELECT s.t.a, (SELECT max(r.t.b) FROM r.t WHERE r.t.a >= s.t.a) AS m FROM s.t",
        "SELECT s.t.a FROM s.t WHERE s.t.b > (SELECT min(b) FROM s.t WHERE a = 10)",
        "SELECT s.t.a FROM s.t WHERE EXISTS (SELECT 1 FROM r.t AS t WHERE t.a = s.t.a)",
        "WITH t AS (SELECT 2 AS a) SELECT s.t.b FROM s.t WHERE s.t.a IN (SELECT t.a FROM t)",
        "SELECT t.a FROM s.t, LATERAL (SELECT r.t.b AS q FROM r.t WHERE r.t.a = s.t.a)",
        # Case
        'SELECT "MIXED", mixed AS m, q.MiXeD AS o FROM s.texts q WHERE MIXED = 2',
        "SELECT q.A AS x FROM s.t q",
        "SELECT * FROM s.t x JOIN r.t y USING (A)",
        "SELECT a FROM s.t WHERE EXISTS (SELECT 1 FROM r.t q WHERE q.A = t.A)",
        # Forms that other parsers cannot read
        "SELECT [x + 1 FOR x IN l] AS m FROM s.lists",
        "SELECT [x FOR x IN l IF x > 1] AS m FROM s.lists WHERE len(l) > 0",
        "SELECT l[1:2] AS m, st.t FROM s.lists",
        "SELECT st FROM s.lists WHERE st.t = 4",
        "SELECT x: a, y: b + 1 FROM q: s.t WHERE q.a > 1",
        "FROM s.t SELECT a WHERE b > 5 ORDER BY ALL",
        "SELECT COLUMNS('a|b') FROM s.t WHERE a < 3",
        "SELECT * EXCLUDE (a) REPLACE (b + 1 AS b) FROM s.t",
        "SELECT a FROM s.t GROUP BY ROLLUP (a) HAVING a = 1",
        "SELECT a, count(*) AS n FROM s.t GROUP BY CUBE (a) HAVING a IS NULL",
        "SELECT b AS c, count(*) AS n FROM s.t GROUP BY c HAVING c > 2",
        "SELECT a FROM s.t QUALIFY row_number() OVER (ORDER BY b) = 1",
        "SELECT 'é' AS \"ü\", a FROM s.t WHERE 'ß' = 'ß' AND a = 2",
        "SELECT a, -- 'quote\n b /* \" /* nested */ */ FROM s.t WHERE a = $$2$$::INT",
        "SELECT\u00a0a FROM\u2003s.t WHERE a = 2",
        "SELECT a FROM s.t WHERE b = E'\\x31\\x30'::INT",
        "SELECT sum(a) FILTER (b > 5) AS f, count(DISTINCT a) AS n FROM s.t",
        "SELECT * FROM s.t ASOF JOIN r.t q ON s.t.a >= q.a",
        "SELECT * FROM (VALUES (1, 2)) v(x, y), s.t WHERE x = a",
        "SELECT * FROM range(3) g(i) JOIN s.t ON a = i",
        "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 3) "
        "SELECT i, b FROM c JOIN s.t ON a = i",
        "PIVOT (SELECT a % 2 AS p, b FROM s.t WHERE a < 11) ON p USING sum(b)",
        "SELECT * FROM (PIVOT s.t ON a USING max(b))",
        "PIVOT s.t ON a % 2 USING max(b)",
        "PIVOT s.t ON a % 2 = 0, a + 1 USING max(b) AS m, count(*) AS c GROUP BY b",
        "PIVOT (SELECT * FROM s.t WHERE a < 11) ON CASE WHEN a < 3 THEN 'low' END USING count(*)",
        "FROM (PIVOT s.t ON [a, b] USING count(*) GROUP BY b)",
        "PIVOT s.t ON (a, b) USING count(*)",
        "UNPIVOT s.t ON a, b INTO NAME n VALUE v",
        "SELECT count(*) AS n FROM s.t TABLESAMPLE 100%",
        # Columns that are called after expressions with tables in them
        "SELECT (SELECT max(a) FROM s.t), a + (SELECT min(b) FROM r.t) FROM s.t",
        "SELECT 2 > ANY(SELECT a FROM s.t), a IN (SELECT a FROM r.t), a FROM s.t",
        "SELECT * FROM (SELECT coalesce((SELECT max(a) FROM s.t), 1)) q, r.t",
        "SELECT CASE WHEN EXISTS(FROM s.t WHERE a = 10) THEN 1 ELSE (SELECT max(a) FROM r.t) END",
        "SELECT (SELECT (SELECT max(k) FROM s.nulls) + 1) IS DISTINCT FROM 5 FROM s.t ORDER BY 1",
        'SELECT ARRAY(SELECT a FROM r.t ORDER BY a), -(SELECT max("Mixed") FROM s.texts)',
        "SELECT 1, quantile_cont(a, 0.5) + (SELECT 1 FROM r.t LIMIT 1) FROM s.t GROUP BY ALL",
        "SELECT s.t.b + 1, r.t.b, -r.t.a FROM s.t JOIN r.t ON s.t.a = r.t.a",
        "SELECT (SELECT max(s.t.b + r.t.b) FROM r.t) FROM s.t WHERE s.t.a = 1",
        "SELECT list_transform([1], lambda x: x + 1), (SELECT 'a, b' FROM r.t LIMIT 1) FROM r.t",
        "FROM s.t SELECT (SELECT max(a) FROM r.t), b WHERE a = 1",
        "SELECT (SELECT max(a) FROM s.t) UNION ALL SELECT (SELECT max(b) FROM s.t)",
        "SELECT unnest((SELECT l FROM s.lists LIMIT 1)), 1 AS x",
        "SELECT count(*) + (SELECT max(a) FROM s.t), COLUMNS('^b') FROM r.t GROUP BY b",
        'SELECT x: (SELECT max(a) FROM s.t), (SELECT min(a) FROM s.t) AS "y z"',
        "WITH q AS (SELECT (SELECT max(b) FROM r.t)) SELECT *, (SELECT count(*) FROM q) FROM q",
        # A query that goes on with the rows of a key
        "WITH RECURSIVE c(i, x) USING KEY (i) AS (SELECT 1, 10 UNION ALL "
        "SELECT n.i + 1, r.x + 1 FROM c n JOIN recurring.c r ON n.i = r.i WHERE n.i < 4) FROM c",
        "WITH RECURSIVE c(i, x) USING KEY (i) AS (SELECT 1, b FROM s.t WHERE a = 1 UNION ALL "
        'SELECT n.i + 1, q.x FROM c n, "Recurring".C q, s.t WHERE n.i < 3 AND t.a = 2) FROM c',
        'WITH "s.t" AS (SELECT 1 AS z) SELECT * FROM s.t',
        # Functions behind their first argument
        "SELECT d.upper(), q.d.length() FROM s.texts q WHERE d.upper().starts_with('2024-01')",
        "SELECT q.a FROM s.t q JOIN r.t x ON q.a = x.a WHERE q.b.abs() + x.b > 200",
        # Constants that no bound can be compared with
        "SELECT k FROM s.dates WHERE d < 'infinity'::DATE",
        "SELECT k FROM s.dates WHERE d > '-infinity'::DATE AND k < 3",
        "SELECT a FROM s.t WHERE a < 170141183460469231731687303715884105727",
        "SELECT a FROM s.t WHERE a = 9007199254740993::HUGEINT",
        "SELECT a FROM s.t WHERE a > 1e300",
        "SELECT n FROM s.d WHERE a > 1e400",
        "SELECT n FROM s.d WHERE a >= 2",
        "SELECT n FROM s.d WHERE a = 'nan'::DOUBLE",
        # What DuckDB 1.5 gets wrong over several files
        "SELECT k FROM s.nulls WHERE x IS DISTINCT FROM 1 OR x = 5",
        "SELECT k FROM s.nulls WHERE NOT (x IS NOT DISTINCT FROM 1 AND x <> 5)",
        "SELECT k FROM s.nulls n WHERE (n.x IS DISTINCT FROM 1) OR k = 1",
        "SELECT * FROM (SELECT k FROM s.nulls ORDER BY k LIMIT 2) z "
        "JOIN (SELECT k AS b FROM s.nulls WHERE k = 4) ON k = b",
    ],
)
def test_a_query_has_the_rows_that_duckdb_has(both: tuple[Catalog, Any], text: str) -> None:
    same(both, text)


@pytest.mark.parametrize("count", [300, 900])
def test_a_long_sum_is_evaluated(both: tuple[Catalog, Any], count: int) -> None:
    total, ones = "+".join(["b"] * count), "+".join(["1"] * count)
    same(both, f"SELECT a, b FROM s.t WHERE {total} >= {ones}")
    same(both, f"SELECT a FROM s.t WHERE a + {ones} = b + {ones} OR {total} < 0")


@pytest.mark.parametrize(
    "expression",
    [
        *("b+(" * 900 + "1" + ")" * 900, "NOT " * 2000 + "true", "abs(" * 900 + "b" + ")" * 900),
        *("CASE WHEN b = 1 THEN " * 900 + "1" + " END" * 900, "[" * 3000 + "1" + "]" * 3000),
        *("b" + "::BIGINT" * 900, "+".join(["b"] * 5000), "(SELECT " * 900 + "1" + ")" * 900),
        *("(" * 900 + "b" + ")" * 900, "- " * 3000 + "b", "(b = " * 900 + "b" + ")" * 900),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM s.t WHERE ({})::VARCHAR = 'no'",
        "DELETE FROM s.t WHERE ({})::VARCHAR = 'no'",
        "UPDATE s.t SET a = a WHERE ({})::VARCHAR = 'no'",
    ],
)
def test_what_is_nested_deeply_is_evaluated_or_refused(
    both: tuple[Catalog, Any], text: str, expression: str
) -> None:
    catalog, _ = both
    problem = ""
    try:
        catalog.sql(text.format(expression)).to_arrow()
    except FrazilError as error:
        problem = str(error)
    assert not problem or "nest" in problem or "deep" in problem
    assert catalog.sql("SELECT count(*) AS n FROM s.t").to_pylist() == [{"n": 5}]


def test_pivots_that_are_refused_say_why(both: tuple[Catalog, Any]) -> None:
    catalog, _ = both
    with pytest.raises(FrazilError, match="PIVOT may not follow WITH"):
        catalog.sql("WITH q AS (FROM s.t) PIVOT q ON a USING max(b)")
    with pytest.raises(FrazilError, match=r"line 1, column 14.*nope"):
        catalog.sql("PIVOT s.t ON nope + 1 USING max(b)")


def test_nan_among_many_join_keys_does_not_prune(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bound_scans, "_is_worth", lambda small, large: large.ready is not None)
    keys = pa.table({"f": [NAN, *(float(n) for n in range(2000))]})
    with frazil.connect(tmp_path) as catalog:
        catalog.create_table("s.small", keys)
        large = catalog.create_table("s.large", pa.schema([("f", pa.float64()), ("n", pa.int64())]))
        large.append(pa.table({"f": [5.0, 1e9], "n": [1, 2]}))
        large.append(pa.table({"f": [NAN], "n": [3]}))
        text = "SELECT n FROM s.large l JOIN s.small q ON l.f = q.f ORDER BY n"
        assert catalog.sql(text).to_arrow().column("n").to_pylist() == [1, 3]


def test_struct_fields_may_be_called_as_types_are(tmp_path: Path) -> None:
    text = "SELECT {'BIT': 1, 'HUGEINT': 2::HUGEINT, 'u': [3::UHUGEINT]} AS s, MAP {'BIT': 4} AS m"
    with frazil.connect(tmp_path) as catalog:
        (row,) = catalog.sql(text).to_pylist()
    assert row == {"s": {"BIT": 1, "HUGEINT": 2, "u": ["3"]}, "m": [("BIT", 4)]}


def test_a_uuid_is_one_in_changes_too(tmp_path: Path) -> None:
    value = uuid.uuid4()
    with frazil.connect(tmp_path) as catalog:
        catalog.sql("CREATE TABLE s.u (u UUID, n INT)")
        catalog.sql("INSERT INTO s.u VALUES (?, 1)", [value])
        for source in ("table_changes('s.u')", "s.u.changes", "s.u"):
            rows = catalog.sql(f"SELECT n FROM {source} WHERE u = '{value}'").to_pylist()
            assert rows == [{"n": 1}], source


@pytest.mark.parametrize(
    ("condition", "problem"),
    [("u = 'abc'", "abc"), ("n = 'x'", "x"), ("d = DATE '2024-02-31'", "2024-02-31")],
)
def test_conditions_that_cannot_be_evaluated_fail_in_the_engine_alone(
    tmp_path: Path, condition: str, problem: str
) -> None:
    with frazil.connect(tmp_path) as catalog:
        catalog.sql("CREATE TABLE s.u (u UUID, n INT, d DATE)")
        catalog.sql("INSERT INTO s.u VALUES (uuid(), 1, DATE '2024-01-01')")
        with pytest.raises(InvalidInput, match=problem):
            catalog.sql(f"SELECT n FROM s.u WHERE {condition}").to_arrow()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + ".".join(["a"] * 2000) + " FROM s.t",
        "SELECT a FROM " + ".".join(["a"] * 2000),
        "SELECT 'a",
        'SELECT "a',
        "SELECT a FROM s.t /* ",
        "SELECT $$a",
        "SELECT '\0'",
        "SELECT '\ud800'",
        "SELECT " + "+".join(["a"] * 5000) + " FROM s.t",
        "SELECT a FROM s.t WHERE",
        "SELECT (a FROM s.t",
        "SELECT E'\\xff'",
    ],
    ids=range(12),
)
def test_text_that_cannot_be_read_is_refused_with_an_error_of_ours(
    both: tuple[Catalog, Any], text: str
) -> None:
    with pytest.raises(FrazilError):
        both[0].sql(text).to_arrow()


def test_names_of_many_parts_find_tables(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as catalog:
        table = catalog.create_table("a.b.c.t", [{"x": 1, "p": {"q": {"r": 2}}}])
        text = "SELECT a.b.c.t.p.q.r AS y FROM a.b.c.t WHERE a.b.c.t.p.q.r = 2"
        assert catalog.sql(text).to_pylist() == [{"y": 2}]
        assert catalog.sql("SELECT count(*) AS n FROM a.b.c.t.snapshots").to_pylist() == [{"n": 1}]
        version = table.current_snapshot().snapshot_id  # type: ignore[union-attr]
        text = f"SELECT q.x FROM a.b.c.t FOR VERSION AS OF {version} AS q"
        assert catalog.sql(text).to_pylist() == [{"x": 1}]
        text = f"SELECT q.x FROM a.b.c.t q AT (VERSION => {version})"
        assert catalog.sql(text).to_pylist() == [{"x": 1}]


# Views


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Catalog]:
    with frazil.connect(tmp_path) as catalog:
        catalog.sql("CREATE TABLE s.t (a INT, b INT)")
        catalog.sql("INSERT INTO s.t VALUES (1, 10)")
        catalog.sql("INSERT INTO s.t VALUES (2, 20)")
        yield catalog


def rows_of(catalog: Catalog, text: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = catalog.sql(text).to_pylist()
    return rows


@pytest.mark.parametrize(
    "view",
    [
        "WITH t AS (SELECT id, v FROM r.t) SELECT * FROM t",
        "SELECT r.t.id, r.t.v FROM r.t",
    ],
)
def test_a_view_that_is_read_twice_is_pruned_apart(tmp_path: Path, view: str) -> None:
    with frazil.connect(tmp_path / "warehouse") as catalog:
        schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
        table = catalog.create_table("r.t", schema)
        for v in (0, None, 3):  # a file each
            table.append([{"id": 2, "v": v}])
        catalog.sql(f"CREATE VIEW r.z AS {view}")
        both = "r.z AS a JOIN r.z AS b ON a.id = b.id"
        found = catalog.sql(f"SELECT a.v FROM {both} WHERE b.v IS NULL ORDER BY a.v").to_pylist()
        assert found == [{"v": 0}, {"v": 3}, {"v": None}]
        found = catalog.sql(f"SELECT a.v FROM {both} WHERE a.v = 3 AND b.v = 0").to_pylist()
        assert found == [{"v": 3}]


def test_a_view_of_all_columns_keeps_its_meaning(shop: Catalog) -> None:
    shop.sql("CREATE VIEW s.v AS SELECT * FROM s.t")
    shop.sql("CREATE VIEW s.w (x, y) AS SELECT * FROM s.t")
    shop.sql("ALTER TABLE s.t ADD COLUMN c INT FIRST")
    shop.sql("ALTER TABLE s.t ALTER COLUMN b FIRST")
    assert rows_of(shop, "SELECT * FROM s.v WHERE a = 1") == [{"a": 1, "b": 10}]
    assert rows_of(shop, "SELECT * FROM s.w WHERE x = 2") == [{"x": 2, "y": 20}]
    shop.sql("ALTER TABLE s.t DROP COLUMN b")
    shop.sql("ALTER TABLE s.t ADD COLUMN d INT")
    with pytest.raises(InvalidInput, match=r"view s\.v: column b, .* is gone"):
        shop.sql("SELECT * FROM s.v").to_arrow()


def test_a_view_with_other_names_for_columns_is_pruned_by_its_own(shop: Catalog) -> None:
    shop.sql("CREATE VIEW s.v (b, a) AS SELECT a, b FROM s.t")
    assert rows_of(shop, "SELECT * FROM s.v WHERE a = 10") == [{"b": 1, "a": 10}]
    assert rows_of(shop, "SELECT * FROM s.v WHERE b = 2 AND a > 0") == [{"b": 2, "a": 20}]
    shop.sql("CREATE VIEW s.twice (p, q) AS SELECT a, a FROM s.t")
    assert rows_of(shop, "SELECT * FROM s.twice WHERE q = 2") == [{"p": 2, "q": 2}]


@pytest.mark.parametrize(
    "view",
    [
        "s.v AS SELECT * FROM s.t x JOIN s.t y ON x.a = y.a",
        "s.v AS SELECT x.*, y.a FROM s.t x, s.t y WHERE x.a < y.a",
        "s.v AS SELECT a, b AS a FROM s.t",
        "s.v AS SELECT a, a, b AS A FROM s.t",
        "s.v (x) AS SELECT a, b FROM s.t",
        "s.v (b) AS SELECT a, a + 1, b AS c FROM s.t",
    ],
)
def test_columns_of_a_view_are_called_as_in_duckdb(tmp_path: Path, view: str) -> None:
    with BesideDuckDb(tmp_path) as db:
        db.both(
            "CREATE TABLE s.t (a INT, b INT)",
            "INSERT INTO s.t VALUES (1, 10), (2, 20)",
            f"CREATE VIEW {view}",
        )
        theirs = db.plain.execute("SELECT * FROM s.v")
        names = [name for name, *_ in theirs.description]
        assert db.session.sql("SELECT * FROM s.v").to_arrow().column_names == names
        for column in names:
            ours, theirs = db.query(f'SELECT * FROM s.v WHERE "{column}" < 2')
            assert ours is not None
            assert ours == theirs


def test_a_view_stored_by_an_older_version_goes_by_names(shop: Catalog) -> None:
    shop.sql("CREATE VIEW s.v AS SELECT * FROM s.t")
    shop.sql("CREATE VIEW s.w (b, a) AS SELECT a, b FROM s.t")
    for name in ("s.v", "s.w"):
        views = shop._pointers.views
        base = views.load(name)
        (version,) = base.metadata["versions"]
        plain = {k: v for k, v in version["summary"].items() if not k.startswith("frazil.")}
        views.replace(base, {**base.metadata, "versions": [{**version, "summary": plain}]})
    shop.sql("ALTER TABLE s.t ALTER COLUMN b FIRST")
    assert rows_of(shop, "SELECT * FROM s.v WHERE a = 1") == [{"a": 1, "b": 10}]
    assert rows_of(shop, "SELECT * FROM s.w WHERE a = 10") == [{"b": 1, "a": 10}]
