"""Changes through SQL leave the rows that plain DuckDB has after the same statement."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.errors import FrazilError, InvalidInput
from tests.support.beside_duckdb import BesideDuckDb


@pytest.fixture
def db(tmp_path: Path) -> Iterator[BesideDuckDb]:
    with BesideDuckDb(tmp_path / "w") as made:
        yield made


@pytest.fixture
def named(db: BesideDuckDb) -> BesideDuckDb:
    """Tables of the same name in two namespaces."""
    db.both(
        "CREATE TABLE s.t (id BIGINT, v BIGINT, w VARCHAR)",
        "INSERT INTO s.t VALUES (1, 10, 'a'), (2, 20, 'b'), (3, NULL, 'c'), (NULL, 40, NULL)",
        "CREATE TABLE r.t (id BIGINT, v BIGINT, w VARCHAR)",
        "INSERT INTO r.t VALUES (2, 200, 'B'), (3, 300, NULL), (9, 900, 'z')",
        "CREATE TABLE s.u (id BIGINT, x BIGINT)",
        "INSERT INTO s.u VALUES (1, 7), (9, 8)",
    )
    return db


# Expressions are run as they were written


@pytest.mark.parametrize(
    "expression",
    [
        "CASE WHEN u.w ~ 'b' THEN 'full' ELSE 'part' END",
        "CASE WHEN 'abc' ~ 'b' THEN 'full' ELSE 'part' END",
        "regexp_replace(u.w, 'A', 'x', 'gi')",
        "regexp_extract(u.w, 'a(.)c', 1)",
        "regexp_matches(u.w, 'B', 'i')::VARCHAR",
        "u.w || 'CAST(''x'' AS DATE)'",
        "CAST('2024-01-31'::DATE + INTERVAL 1 MONTH AS VARCHAR)",
        "strftime(DATE '2024-01-02', '%d/%m/%Y')",
        "(7 // 2)::VARCHAR || (7 / 2)::VARCHAR || (-7 % 3)::VARCHAR",
        "CAST(1.5 AS DECIMAL(4, 1))::VARCHAR",
        "u.w[1:2] || u.w[-1]",
        "['x', u.w][2]",
        "list_transform([1, 2], lambda x: x + u.id)::VARCHAR",
        "[x + 1 FOR x IN [u.id, 5]]::VARCHAR",
        "{'a': u.id, 'b': 2}.b::VARCHAR",
        "TRY_CAST(u.w AS INTEGER)::VARCHAR",
        "$$it's $1 and ?$$",
        "E'a\\tb'",
        "CASE WHEN u.w SIMILAR TO '.*b.*' THEN 'y' END",
        "CASE WHEN u.w GLOB '*b*' THEN 'y' END",
        "date_trunc('month', TIMESTAMP '2024-05-06 07:08:09')::VARCHAR",
        "1e3::VARCHAR || 1_000::VARCHAR",
        "(u.id IS DISTINCT FROM 1)::VARCHAR",
        "printf('%05.2f', 3.14159)",
        "'é' || u.w /* a comment ' */ -- another \"\n",
    ],
)
@pytest.mark.parametrize(
    "statement",
    [
        "MERGE INTO s.t USING s.u AS u ON t.id = u.id WHEN MATCHED THEN UPDATE SET w = {}",
        "MERGE INTO s.t USING s.u AS u ON t.id = u.id WHEN NOT MATCHED THEN "
        "INSERT (id, w) VALUES (u.id, {})",
        "UPDATE s.t SET w = {} FROM s.u AS u WHERE t.id = u.id",
    ],
)
def test_expressions_run_as_they_were_written(
    db: BesideDuckDb, statement: str, expression: str
) -> None:
    db.both(
        "CREATE TABLE s.t (id BIGINT, w VARCHAR)",
        "INSERT INTO s.t VALUES (1, 'abc'), (2, 'x')",
        "CREATE TABLE s.u (id BIGINT, w VARCHAR)",
        "INSERT INTO s.u VALUES (1, 'abc'), (3, 'aBc')",
    )
    db.same(statement.format(expression))


@pytest.mark.parametrize(
    "condition",
    [
        "v = 'CAST('' AS DATE)'",
        "v = 'CAST('' AS DATE)' AND length(v) > 1",
        "v = 'DATE ''2024-01-01''' OR length(v) < 0",
        "v ~ 'C.*'",
        "v ~ 'C' AND id + 0 = 1",
        "v LIKE 'C%\\_%' ESCAPE '\\'",
        "v ILIKE 'cast%' AND id % 1 = 0",
        "NOT (v IS NOT DISTINCT FROM NULL) AND id + 0 > 0",
    ],
)
def test_conditions_run_as_they_were_written(db: BesideDuckDb, condition: str) -> None:
    db.both(
        "CREATE TABLE s.t (id BIGINT, v VARCHAR)",
        "INSERT INTO s.t VALUES (1, 'CAST('' AS DATE)'), (2, 'DATE ''2024-01-01'''), (3, NULL)",
    )
    db.same(f"DELETE FROM s.t WHERE {condition}")


# Names


@pytest.mark.parametrize(
    "statement",
    [
        "MERGE INTO s.t USING r.t AS q ON t.id = q.id WHEN MATCHED THEN UPDATE SET v = q.v",
        "MERGE INTO s.t USING r.t ON s.t.id = r.t.id WHEN MATCHED THEN UPDATE SET v = r.t.v",
        "MERGE INTO s.t USING r.t ON s.t.id = r.t.id WHEN MATCHED AND s.t.v < r.t.v THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT VALUES (r.t.id, r.t.v + 1, r.t.w)",
        "MERGE INTO s.t USING r.t USING (id) WHEN MATCHED THEN UPDATE SET w = r.t.w",
        "MERGE INTO s.t USING r.t ON s.t.id = r.t.id "
        "WHEN MATCHED AND s.t.v < (SELECT max(r.t.v) FROM r.t WHERE r.t.id < 10) THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT VALUES "
        "(r.t.id, (SELECT min(r.t.v) FROM r.t WHERE r.t.id >= 9), r.t.w)",
        "MERGE INTO s.t USING r.t ON s.t.id = r.t.id "
        "WHEN MATCHED AND EXISTS (SELECT 1 FROM s.u WHERE s.u.id = s.t.id) THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT VALUES "
        "(r.t.id, (SELECT max(s.u.x) FROM s.u WHERE s.u.id < 2), r.t.w)",
        "UPDATE s.t SET v = r.t.v FROM r.t WHERE s.t.id = r.t.id",
        "UPDATE s.t SET v = r.t.v + s.t.v FROM r.t WHERE r.t.id = s.t.id AND r.t.w IS NOT NULL",
        "UPDATE s.t AS a SET v = b.v FROM r.t AS b WHERE a.id = b.id",
        "UPDATE s.t SET v = u.x FROM s.u, r.t AS q WHERE s.t.id = u.id AND q.id = u.id + 8",
        "UPDATE s.t SET v = q.x FROM (SELECT * FROM s.u) AS q(id, x) WHERE t.id = q.id",
        "UPDATE s.t SET v = u.x FROM s.u JOIN r.t q ON q.id = 9 WHERE t.id = u.id",
        "DELETE FROM s.t USING r.t WHERE s.t.id = r.t.id",
        "DELETE FROM s.t USING r.t AS q WHERE t.id = q.id AND q.w IS NULL",
        "DELETE FROM s.t USING s.u, r.t q WHERE s.t.id = u.id AND q.id = 9",
        "DELETE FROM s.t WHERE EXISTS (SELECT 1 FROM r.t WHERE r.t.id = s.t.id)",
        "DELETE FROM s.t WHERE id IN (SELECT t.id FROM r.t)",
        "DELETE FROM s.t WHERE v > (SELECT min(r.t.v) / 10 FROM r.t WHERE r.t.id >= s.t.id)",
        "UPDATE s.t SET v = (SELECT max(r.t.v) FROM r.t WHERE r.t.id = s.t.id)",
        "UPDATE s.t SET v = (SELECT max(q.v) FROM r.t q WHERE q.id = t.id) WHERE id IS NOT NULL",
        "WITH q AS (SELECT id, v FROM r.t) UPDATE s.t SET v = q.v FROM q WHERE q.id = t.id",
        "WITH q AS (SELECT id FROM r.t) DELETE FROM s.t WHERE id IN (FROM q)",
        "WITH q AS (SELECT id FROM r.t) DELETE FROM s.t USING q WHERE q.id = t.id",
    ],
)
def test_tables_of_one_name_in_two_namespaces(named: BesideDuckDb, statement: str) -> None:
    named.same(statement, "s.t", "r.t", "s.u")


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM s.t USING s.u WHERE id = 9",
        "DELETE FROM s.t USING s.u WHERE x = 8 AND id IS NULL",
        "UPDATE s.t SET v = 0 FROM s.u WHERE id = 9",
        "UPDATE s.t SET v = id FROM s.u WHERE t.id = u.id",
        "MERGE INTO s.t USING s.u ON id = 9 WHEN MATCHED THEN DELETE",
        "MERGE INTO s.t USING s.u ON t.id = u.id WHEN MATCHED AND id = 1 THEN DELETE",
        "MERGE INTO s.t USING s.u ON t.id = u.id WHEN MATCHED THEN UPDATE SET v = id",
        "DELETE FROM s.t USING r.t WHERE t.id = 9",
        "UPDATE s.t SET v = 1 FROM r.t WHERE t.id = 2",
        "DELETE FROM s.t WHERE u.id = 1",
        "DELETE FROM s.t AS a WHERE t.id = 1",
        "UPDATE s.t AS a SET v = 1 WHERE s.t.id = 1",
        "MERGE INTO s.t USING s.u ON t.id = u.id WHEN NOT MATCHED THEN INSERT VALUES (t.id, 1, '')",
        "MERGE INTO s.t USING s.u ON t.id = u.id WHEN NOT MATCHED BY SOURCE AND u.x = 1 "
        "THEN DELETE",
    ],
)
def test_what_is_ambiguous_or_unknown_is_refused(named: BesideDuckDb, statement: str) -> None:
    named.refused(statement, "s.t", "r.t", "s.u")


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM s.x WHERE t.a = 1",
        "DELETE FROM s.x WHERE t.a + 0 = 1 AND s.b = 'q'",
        "UPDATE s.x SET a = t.a + 100 WHERE s.b = 'q'",
        "UPDATE s.x AS t SET a = 5 WHERE t.a = 10",
        "UPDATE s.x AS s SET a = s.a + 1 WHERE s.s.b = 'q'",
        "UPDATE s.x AS t SET a = (SELECT max(t.x) FROM s.y AS t) WHERE t.a = 10",
        "DELETE FROM s.x AS t WHERE EXISTS (SELECT 1 FROM s.y AS s WHERE s.x = t.a)",
        "DELETE FROM s.x WHERE EXISTS (SELECT 1 FROM s.y AS t WHERE t.x = x.a)",
        "DELETE FROM s.x WHERE EXISTS (SELECT 1 FROM s.y AS t WHERE t.x = a)",
        "MERGE INTO s.x USING s.y ON x.a = y.x WHEN MATCHED AND t.a = 1 THEN DELETE",
        "MERGE INTO s.x USING s.y ON x.a = y.x WHEN MATCHED THEN UPDATE SET a = t.a + length(s.b)",
        "MERGE INTO s.x USING s.y ON x.a = y.x WHEN MATCHED AND y.x > 1 THEN UPDATE SET a = t.a",
        "MERGE INTO s.x AS s USING s.y AS t ON s.a = t.x WHEN MATCHED AND t.x = 10 THEN "
        "UPDATE SET a = t.x + s.a + s.t.a",
        "MERGE INTO s.x AS d USING s.y AS f ON d.a = f.x WHEN MATCHED AND f.x = 10 THEN "
        "UPDATE SET a = f.x + d.a",
        "UPDATE s.x SET a = t.a FROM s.y AS s WHERE s.x = a",
        "UPDATE s.x SET a = y.f + p FROM s.y WHERE y.x = a",
        "UPDATE s.x SET t = {'a': 5}",
    ],
)
def test_columns_and_aliases_may_be_called_as_we_call_rows(
    db: BesideDuckDb, statement: str
) -> None:
    db.both(
        "CREATE TABLE s.x (a BIGINT, t STRUCT(a BIGINT), s STRUCT(b VARCHAR))",
        "INSERT INTO s.x VALUES (10, {'a': 1}, {'b': 'q'}), (20, {'a': 2}, {'b': 'r'}), "
        "(30, NULL, NULL)",
        "CREATE TABLE s.y (x BIGINT, f BIGINT, p BIGINT)",
        "INSERT INTO s.y VALUES (10, 3, 4), (20, 5, 6), (40, 7, 8)",
    )
    db.same(statement, "s.x", "s.y")


@pytest.mark.parametrize(
    "statement",
    [
        'MERGE INTO s.c USING (SELECT 1 AS "ID", 5 AS "K") q ON c.id = q.id '
        "WHEN MATCHED THEN UPDATE SET k = q.K",
        "MERGE INTO s.c USING (SELECT 1 AS ID, 5 AS K) q USING (id) WHEN MATCHED THEN "
        "UPDATE SET K = q.k",
        'MERGE INTO s.c USING (SELECT 1 AS "id", 5 AS "K") Q USING ("iD") WHEN MATCHED THEN DELETE',
        "MERGE INTO s.c USING (SELECT 7 AS ID, 5 AS K) q ON C.Id = Q.Id WHEN NOT MATCHED THEN "
        "INSERT (K, ID) VALUES (q.k, Q.ID)",
        'UPDATE s.c SET "k" = q."K" + C."iD" FROM (SELECT 1 AS "ID", 2 AS k) q WHERE q.id = ID2',
        'DELETE FROM s.c WHERE EXISTS (SELECT 1 FROM s.e WHERE e.x = c."id")',
        "DELETE FROM s.c WHERE EXISTS (SELECT 1 FROM s.e AS T WHERE t.X = C.ID)",
        'DELETE FROM s.c WHERE "ID2" = 1 AND Id + 0 = 1',
        """UPDATE s.c SET "P" = {'A': "p".a + 1} WHERE ID = 1""",
        "INSERT INTO s.c (k, Id) SELECT 1, 2",
        "INSERT INTO s.c BY NAME SELECT 1 AS K, 2 AS iD",
    ],
)
def test_case_does_not_matter(db: BesideDuckDb, statement: str) -> None:
    db.both(
        'CREATE TABLE s.c ("Id" BIGINT, "K" BIGINT, "iD2" BIGINT, "p" STRUCT("A" BIGINT))',
        "INSERT INTO s.c VALUES (1, 2, 1, {'A': 1}), (2, 3, 2, NULL)",
        'CREATE TABLE s.e ("X" BIGINT)',
        "INSERT INTO s.e VALUES (1)",
    )
    db.same(statement, "s.c")


def test_columns_that_differ_in_case_only_are_refused(db: BesideDuckDb) -> None:
    ours, theirs = db.change("CREATE TABLE s.d (a INT, A INT)")
    assert theirs is not None
    assert ours is not None
    assert not db.catalog.table_exists("s.d")


# Expressions that end late, and clauses that do nothing


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE s.t SET f = a IS DISTINCT FROM b",
        "UPDATE s.t SET f = a IS NOT DISTINCT FROM b WHERE a IS DISTINCT FROM 2",
        "UPDATE s.t SET f = (a IS DISTINCT FROM s.u.k) FROM s.u WHERE a IS NOT DISTINCT FROM k",
        "UPDATE s.t SET l = [x + 1 FOR x IN l], a = a + 1",
        "UPDATE s.t SET l = [x + b FOR x IN l IF x > 1]",
        "UPDATE s.t SET l = list_transform(l, lambda x: x * a)",
        "DELETE FROM s.t WHERE len([x FOR x IN l IF x = a]) > 0",
        "MERGE INTO s.t USING s.u ON a = k WHEN MATCHED THEN DO NOTHING",
        "MERGE INTO s.t USING s.u ON a = k WHEN NOT MATCHED THEN DO NOTHING",
        "MERGE INTO s.t USING s.u ON a = k WHEN MATCHED AND b = 20 THEN DO NOTHING "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND k > 8 THEN DO NOTHING "
        "WHEN NOT MATCHED THEN INSERT (a) VALUES (k)",
        "MERGE INTO s.t USING s.u ON a = k WHEN NOT MATCHED BY SOURCE AND b > 25 THEN DO NOTHING "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET b = -b",
        "MERGE INTO s.t USING s.u ON a = k WHEN NOT MATCHED THEN INSERT DEFAULT VALUES",
        "MERGE INTO s.t USING s.u AS v ON t.a = v.k WHEN NOT MATCHED BY SOURCE THEN DELETE",
        "UPDATE s.t SET b = 7 FROM (SELECT 1) AS one",
    ],
)
def test_expressions_end_where_duckdb_ends_them(db: BesideDuckDb, statement: str) -> None:
    db.both(
        "CREATE TABLE s.t (a BIGINT, b BIGINT, f BOOLEAN, l BIGINT[])",
        "INSERT INTO s.t VALUES (1, 10, NULL, [1, 2]), (2, 20, NULL, NULL), (NULL, 30, NULL, [])",
        "CREATE TABLE s.u (k BIGINT)",
        "INSERT INTO s.u VALUES (1), (2), (8), (9)",
    )
    db.same(statement, "s.t", "s.u")


def test_a_condition_before_a_query_ends_where_the_query_begins(tmp_path: Path) -> None:
    catalog = frazil.connect(tmp_path)
    catalog.sql("CREATE TABLE s.t (id BIGINT, ts TIMESTAMPTZ)")
    catalog.sql("INSERT INTO s.t VALUES (1, '2024-01-01'), (2, '2025-01-01'), (NULL, NULL)")
    catalog.sql(
        "INSERT INTO s.t REPLACE WHERE ts >= '2025-01-01'::TIMESTAMP WITH TIME ZONE "
        "SELECT 3, TIMESTAMPTZ '2026-01-01'"
    )
    assert ids(catalog) == [1, 3, None]
    catalog.sql("INSERT INTO s.t REPLACE WHERE id IS DISTINCT FROM 1 VALUES (4, NULL)")
    assert ids(catalog) == [1, 4]


def ids(catalog: frazil.Catalog) -> list[int | None]:
    rows = catalog.sql("SELECT id FROM s.t ORDER BY id").to_pylist()
    return [row["id"] for row in rows]


# Cells and columns


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO s.v VALUES (9007199254740993, '2024-01-01', 'x'), (1.5, DATE '2024-01-02', 2)",
        "INSERT INTO s.v VALUES (1, NULL, NULL), (NULL, '2024-02-03', 'it''s')",
        "INSERT INTO s.v (d, i) VALUES ('2024-01-01', 1), (DATE '2024-01-02', 2.5)",
        "INSERT INTO s.v VALUES (DEFAULT, DEFAULT, DEFAULT), (1 + 1, DATE '2024-01-01' + 1, 'a')",
        "INSERT INTO s.v VALUES ((SELECT max(i) FROM s.v), NULL, (SELECT 'q'))",
        "INSERT INTO s.v VALUES (3, '2024-01-01', 'c'), (2.4, DATE '2024-01-02', 1) "
        "ORDER BY 1 LIMIT 1",
        "WITH q AS (SELECT 5 AS n) INSERT INTO s.v VALUES ((SELECT n FROM q), NULL, 1.50)",
        "INSERT INTO s.v SELECT * FROM (VALUES (1, DATE '2024-01-01', 'x'))",
        "INSERT INTO s.v DEFAULT VALUES",
        # A comma may stand behind the last of a list
        "INSERT INTO s.v VALUES (2, NULL, 'x',), (3, NULL, 'y'),",
        "INSERT INTO s.v (i, w,) VALUES (2, 'x',), ORDER BY 1",
        "UPDATE s.v SET i = 3, w = 'y', WHERE i = 41",
        "MERGE INTO s.v USING (SELECT 41 AS i) q USING (i,) WHEN MATCHED THEN UPDATE SET w = 'z', "
        "WHEN NOT MATCHED THEN INSERT (i,) VALUES (1,)",
    ],
)
def test_each_cell_is_cast_to_its_column(db: BesideDuckDb, statement: str) -> None:
    db.both(
        "CREATE TABLE s.v (i BIGINT, d DATE, w VARCHAR DEFAULT 'w')",
        "INSERT INTO s.v VALUES (41, '2020-01-01', 'old')",
    )
    db.same(statement, "s.v")


@pytest.mark.parametrize(
    "statement",
    [
        "MERGE INTO s.m USING {} AS q ON m.id = q.id WHEN MATCHED THEN UPDATE SET *",
        "MERGE INTO s.m USING {} AS q ON m.id = q.id WHEN NOT MATCHED THEN INSERT *",
        "MERGE INTO s.m USING {} AS q USING (id) WHEN MATCHED THEN UPDATE "
        "WHEN NOT MATCHED THEN INSERT",
        "MERGE INTO s.m USING {} AS q ON m.id = q.id WHEN MATCHED THEN UPDATE BY NAME "
        "WHEN NOT MATCHED THEN INSERT BY NAME *",
    ],
)
@pytest.mark.parametrize(
    "source",
    [
        "(SELECT 1 AS id, 5 AS v, 'n' AS w UNION ALL SELECT 3, 6, 'm')",
        "(SELECT 1 AS ID, 5 AS V, 'n' AS W UNION ALL SELECT 3, 6, 'm')",
        "(SELECT 1 AS id, 5 AS v UNION ALL SELECT 3, 6)",
        "(SELECT 1 AS id, 'n' AS w, 5 AS v UNION ALL SELECT 3, 'm', 6)",
        "(SELECT 1 AS id, 5 AS v, 'n' AS w, 0 AS more UNION ALL SELECT 3, 6, 'm', 1)",
    ],
)
def test_a_star_of_merge_is_duckdbs_or_refused(
    db: BesideDuckDb, statement: str, source: str
) -> None:
    db.both(
        "CREATE TABLE s.m (id BIGINT, v BIGINT, w VARCHAR DEFAULT 'dw')",
        "INSERT INTO s.m VALUES (1, 10, 'a'), (2, 20, 'b')",
    )
    before = db.rows("s.m")[0]
    ours, theirs = db.change(statement.format(source))
    if ours is None:
        assert theirs is None
        db.check("s.m")
    else:
        assert db.rows("s.m")[0] == before
        assert "BY NAME" not in statement or theirs is not None


def test_a_partition_of_nulls_is_overwritten(tmp_path: Path) -> None:
    catalog = frazil.connect(tmp_path)
    catalog.sql("CREATE TABLE s.p (a BIGINT, b BIGINT) PARTITIONED BY (a)")
    catalog.sql("INSERT INTO s.p VALUES (1, 1), (NULL, 2), (NULL, 3)")
    catalog.sql("INSERT OVERWRITE s.p PARTITION (a = NULL) SELECT 9")
    rows = catalog.sql("SELECT a, b FROM s.p ORDER BY b").to_pylist()
    assert rows == [{"a": 1, "b": 1}, {"a": None, "b": 9}]
    catalog.sql("INSERT OVERWRITE s.p PARTITION (a = 0 + 1) SELECT 8")
    rows = catalog.sql("SELECT a, b FROM s.p ORDER BY b").to_pylist()
    assert rows == [{"a": 1, "b": 8}, {"a": None, "b": 9}]


@pytest.mark.parametrize(
    "statements",
    [
        ["ADD COLUMN z BIGINT DEFAULT 4", "INSERT {} VALUES (5, 5, 'q', 5)", "UPDATE SET z = 0"],
        ["ADD COLUMN z BIGINT", "UPDATE SET z = id WHERE id = 1", "DELETE WHERE z = 1"],
        ["DROP COLUMN v", "INSERT {} VALUES (3, 'c')", "UPDATE SET w = w || id"],
        [
            "RENAME COLUMN v TO x",
            "RENAME COLUMN w TO v",
            "INSERT {} (id, v, x) VALUES (3, 'c', 1)",
            "UPDATE SET v = v || x WHERE x < 15",
        ],
        ["ALTER COLUMN w SET DEFAULT 'new'", "INSERT {} (id) VALUES (3)", "UPDATE SET v = 1"],
        ["INSERT {} VALUES (5, 5, 'q')", "ADD COLUMN z BIGINT DEFAULT 4", "UPDATE SET z = z + v"],
        [
            "RENAME COLUMN v TO x",
            "MERGE {0} USING (SELECT 1 AS id) q ON t.id = q.id WHEN MATCHED THEN UPDATE SET x = 99",
        ],
    ],
)
def test_later_statements_use_the_schema_of_an_open_transaction(
    db: BesideDuckDb, statements: list[str]
) -> None:
    db.both(
        "CREATE TABLE s.t (id BIGINT, v BIGINT, w VARCHAR DEFAULT 'dw')",
        "INSERT INTO s.t VALUES (1, 10, 'a'), (2, 20, 'b')",
        "BEGIN",
    )
    for each in statements:
        verb, _, rest = each.partition(" ")
        match verb:
            case "INSERT" | "MERGE":
                db.both(f"{verb} INTO s.t {rest.replace('{0}', '').replace('{}', '')}")
            case "UPDATE":
                db.both(f"UPDATE s.t {rest}")
            case "DELETE":
                db.both(f"DELETE FROM s.t {rest}")
            case _:
                db.both(f"ALTER TABLE s.t {each}")
        db.check("s.t")
    db.both("COMMIT")
    db.check("s.t")


# Text that no parser likes


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM s.t WHERE " + ".".join(["a"] * 2_000) + " = 1",
        "DELETE FROM " + ".".join(["a"] * 2_000),
        "DELETE FROM s.t WHERE id = 'open",
        'UPDATE s.t SET id = "open',
        "UPDATE s.t SET id = $$open",
        "DELETE FROM s.t WHERE id = E'\\xff'",
        "DELETE FROM s.t WHERE id = '\udcff'",
        "DELETE FROM s.t WHERE id = 1) --",
        "DELETE FROM s.t WHERE (id = 1",
        "UPDATE s.t SET id = 1) FROM x --",
        "UPDATE s.t SET id = SELECT 1",
        "DELETE FROM s.t WHERE __frazil_key = 1",
        "DELETE FROM s.t WHERE COLUMNS(*) = 1",
        "UPDATE s.t SET id = hash(t)",
        "UPDATE s.t SET id = count(*) OVER () WHERE id > 0",
        "UPDATE s.t SET id = abs(row_number() OVER (ORDER BY id))",
        "UPDATE s.t SET id = 1 + unnest([7])",
        "UPDATE s.t SET id = generate_subscripts([7], 1)",
        "UPDATE s.t SET id = regexp_split_to_table('7', 'x')::INT",
        "UPDATE s.t SET id = sum(1)",
        "MERGE INTO s.t USING (SELECT 1 AS k) q ON id = k WHEN MATCHED THEN "
        "UPDATE SET id = row_number() OVER ()",
        "MERGE INTO s.t USING (SELECT 1 AS k) q ON id = k AND unnest([true]) "
        "WHEN MATCHED THEN DELETE",
        "MERGE INTO s.t USING (SELECT 9 AS k) q ON id = k WHEN NOT MATCHED THEN "
        "INSERT VALUES (unnest([1, 2]))",
        "DELETE FROM s.t WHERE id = (SELECT 1 FROM read_csv('/etc/passwd'))",
        "DELETE FROM s.t WHERE getenv('HOME') = 'x'",
        "MERGE INTO s.t USING (SELECT 1 AS id) q ON getenv('HOME') = 'x' WHEN MATCHED THEN DELETE",
        "INSERT INTO s.t VALUES (getenv('HOME'))",
        "INSERT INTO s.t VALUES (DEFAULT + 1)",
        "INSERT INTO s.t SELECT DEFAULT",
        "INSERT INTO s.t SELECT unknown_column",
        "INSERT INTO s.t VALUES (3), (,)",
        "INSERT OVERWRITE s.t PARTITION (id = getenv('HOME')) SELECT 1",
    ],
)
def test_bad_text_is_refused_and_changes_nothing(tmp_path: Path, text: str) -> None:
    catalog = frazil.connect(tmp_path)
    catalog.sql("CREATE TABLE s.t (id BIGINT); INSERT INTO s.t VALUES (1), (2)")
    with pytest.raises(FrazilError):
        catalog.sql(text)
    assert ids(catalog) == [1, 2]


# Expressions of Python


def test_expressions_of_python_are_run_as_they_were_written(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as catalog:
        table = catalog.create_table("s.t", pa.schema([("id", pa.int64()), ("w", pa.string())]))
        table.append([{"id": 1, "w": "CAST(' AS DATE)"}, {"id": 2, "w": "abc"}])
        table.update({"w": frazil.expr("'x' || (7 // 2)::VARCHAR || ?", "?'")}, "w ~ 'a.*'")
        assert {row["id"]: row["w"] for row in table.scan().to_pylist()} == {
            1: "CAST(' AS DATE)",
            2: "x3?'",
        }
        table.update({"id": frazil.expr("id -?", -5)}, "w = 'x3?''' and length(w) > 0")
        assert sorted(row["id"] for row in table.scan().to_pylist()) == [1, 7]
        table.delete("w = 'CAST('' AS DATE)' and length(w) > 1")
        assert [row["id"] for row in table.scan().to_pylist()] == [7]


def test_a_column_that_both_sides_have_needs_a_name_of_rows(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as catalog:
        table = catalog.create_table("s.t", pa.schema([("id", pa.int64()), ("v", pa.int64())]))
        table.append([{"id": 1, "v": 1}])
        merging = table.merge([{"id": 1, "v": 2}], on=["id"])
        with pytest.raises(InvalidInput, match=r"ambiguous; write t\.v or s\.v"):
            merging.when_matched_delete(condition="v = 2").execute()


def test_columns_of_structs_may_be_called_as_rows_are(tmp_path: Path) -> None:
    kind = pa.struct([("a", pa.int64())])
    with frazil.connect(tmp_path) as catalog:
        table = catalog.create_table("s.t", pa.schema([("a", pa.int64()), ("t", kind)]))
        table.append([{"a": 1, "t": {"a": 10}}, {"a": 10, "t": {"a": 1}}])
        assert [row["a"] for row in table.scan("t.a = 10").to_pylist()] == [1]
        assert [row["a"] for row in table.scan("t.a + 0 = 10").to_pylist()] == [1]
        table.update({"a": frazil.expr("t.a + 100")}, "t.a + 0 = 10")
        assert sorted(row["a"] for row in table.scan().to_pylist()) == [10, 110]
