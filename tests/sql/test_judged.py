"""What is refused is not run: texts that parsers read differently, functions that read files."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import frazil
from frazil.errors import FrazilError, InvalidInput, NotFound, Unsupported
from frazil.parser import duckdb_parser
from frazil.parser.tokens import Source
from frazil.serve.explorer.pages.sql_page import sandbox
from frazil.sql.bind.change_text import GIVES_ROWS
from frazil.sql.engine.database import OWN_SETTINGS, Database
from frazil.sql.engine.interruptible import Interruptible
from frazil.sql.engine.sql_engine import SqlEngine
from frazil.sql.run.execution import Execution
from frazil.table.catalog import Catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with frazil.connect(tmp_path / "warehouse") as made:
        made.create_table("s.t", [{"a": 1}])
        yield made


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 AS a$b$; COPY (SELECT 42) TO '{file}'; --$b$",
        "SELECT 1 AS a$$; COPY (SELECT 42) TO '{file}'; --$$",
        "SELECT a FROM s.t; COPY (SELECT 42) TO '{file}'",
        "SELECT 1 FROM s.nope; COPY (SELECT 42) TO '{file}'",
        "SELECT nope FROM s.t AS a$b$; COPY (SELECT 42) TO '{file}'; --$b$",
        "WITH x AS (SELECT 1) COPY x TO '{file}'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}'",
        "CREATE VIEW s.v AS SELECT 1 AS a$b$; COPY (SELECT 42) TO '{file}'; --$b$",
        "DESCRIBE SELECT 1 AS a$b$; COPY (SELECT 42) TO '{file}'; --$b$",
        "CREATE TABLE s.n AS SELECT 1 AS a$b$; COPY (SELECT 42) TO '{file}'; --$b$",
        "SELECT a FROM s.t FOR VERSION AS OF (SELECT 1) ; COPY (SELECT 1) TO '{file}'",
        "SELECT /* ' */ 1; COPY (SELECT 42) TO '{file}' -- '",
        "COPY s.t TO '{file}'",
        "ATTACH '{file}' AS x",
        "EXPORT DATABASE '{file}'",
    ],
)
def test_a_refused_text_writes_nothing(catalog: Catalog, tmp_path: Path, text: str) -> None:
    target = tmp_path / "written"
    with pytest.raises(FrazilError):
        list(catalog.session().results(text.format(file=target)))
    assert not target.exists()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM glob('{file}')",
        "SELECT * FROM read_blob('{file}')",
        "SELECT * FROM sniff_csv('{file}')",
        "SELECT * FROM '{file}'",
        'SELECT * FROM "{file}"',
        "SELECT * FROM query('FROM read_text(''{file}'')')",
        "SELECT * FROM query_table('{file}')",
        "SELECT * FROM pandas_scan(NULL)",
        "SELECT * FROM arrow_scan(0, 0, 0)",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM duckdb_secrets()",
        "SELECT * FROM json_execute_serialized_sql('x')",
        "SELECT getenv('HOME')",
        "SELECT current_setting('temp_directory')",
        "SELECT getvariable('x')",
        "SELECT * FROM pragma_user_agent()",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM duckdb_tables",
        "SELECT * FROM sqlite_master",
        "SELECT * FROM pg_catalog.pg_tables",
        "SELECT * FROM system.information_schema.tables",
        "SELECT * FROM temp.information_schema.tables",
        "SELECT (SELECT content FROM read_text('{file}'))",
        "SELECT a FROM s.t WHERE a IN (SELECT size FROM read_blob('{file}'))",
        "SELECT a FROM s.t FOR VERSION AS OF (SELECT content FROM read_text('{file}'))",
        "SELECT a FROM s.t AT (VERSION => (SELECT content FROM read_text('{file}')))",
        "CALL system.rollback_to_snapshot('s.t', (SELECT 1 FROM read_text('{file}')))",
        "ALTER TABLE s.t ADD COLUMN z VARCHAR DEFAULT (SELECT content FROM read_text('{file}'))",
        "ALTER TABLE s.t ADD COLUMN z VARCHAR DEFAULT getenv('HOME')",
        "CREATE VIEW s.v AS SELECT * FROM read_text('{file}')",
        "CREATE TABLE s.n AS SELECT * FROM read_text('{file}')",
        "INSERT INTO s.t SELECT size FROM read_blob('{file}')",
        "DELETE FROM s.t WHERE a IN (SELECT size FROM read_blob('{file}'))",
        "UPDATE s.t SET a = (SELECT max(size) FROM read_blob('{file}'))",
        "MERGE INTO s.t USING (SELECT size AS a FROM read_blob('{file}')) q ON t.a = q.a "
        "WHEN NOT MATCHED THEN INSERT *",
        "PIVOT (SELECT * FROM read_text('{file}')) ON size USING count(*)",
        "SUMMARIZE SELECT * FROM read_text('{file}')",
        "SUMMARIZE '{file}'",
        "SELECT * FROM (DESCRIBE '{file}')",
        "SELECT * FROM table_changes((SELECT content FROM read_text('{file}')))",
    ],
)
def test_a_query_reads_no_file_and_no_setting(catalog: Catalog, tmp_path: Path, text: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("secret")
    with pytest.raises((Unsupported, NotFound, InvalidInput)) as caught:
        catalog.sql(text.format(file=secret)).to_arrow()
    assert "secret\n" not in str(caught.value)
    assert catalog.sql("SELECT a FROM s.t").to_pylist() == [{"a": 1}]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT bool_and(true) EXPORT_STATE",
        "SELECT [x] FROM (SELECT bool_or(a > 0) EXPORT_STATE AS x FROM s.t)",
        "SELECT to_aggregate_state(true, 'bool_and', ['BOOLEAN'])",
        "UPDATE s.t SET a = (SELECT finalize(bool_and(true) EXPORT_STATE))",
    ],
)
def test_states_of_aggregates_do_not_end_the_process(catalog: Catalog, text: str) -> None:
    with pytest.raises(Unsupported, match="state of an aggregate"):
        catalog.sql(text, allow_files=True).to_arrow()


def test_files_may_be_read_where_the_caller_allows_it(catalog: Catalog, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    duckdb.sql("SELECT 7 AS n").write_parquet(str(path))
    for source in (f"read_parquet('{path}')", f"'{path}'"):
        text = f"SELECT n FROM {source}"
        assert catalog.sql(text, allow_files=True).to_pylist() == [{"n": 7}]
        with pytest.raises(Unsupported, match="allow_files=True"):
            catalog.sql(text)
    catalog.sql(f"INSERT INTO s.t SELECT n FROM read_parquet('{path}')", allow_files=True)
    assert catalog.sql("SELECT sum(a) AS n FROM s.t").to_pylist() == [{"n": 8}]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("COPY (SELECT a, a + 1 AS b FROM s.u WHERE a > 1) TO '{file}'", "FROM (VALUES (3, 4))"),
        ("COPY s.u TO '{file}' (FORMAT parquet, COMPRESSION zstd)", "FROM (VALUES (1, 2), (3, 4))"),
        ("COPY s.u (b) TO '{file}' WITH (FORMAT parquet)", "FROM (VALUES (2), (4))"),
        ("COPY (SELECT 'x; COPY' AS a) TO '{file}'", "SELECT 'x; COPY'"),
    ],
)
def test_copy_writes_files_where_the_caller_allows_it(
    catalog: Catalog, tmp_path: Path, text: str, query: str
) -> None:
    catalog.sql("CREATE TABLE s.u AS SELECT * FROM (VALUES (1, 2), (2, 3), (3, 4)) x(a, b)")
    catalog.sql("DELETE FROM s.u WHERE a = 2")
    path = tmp_path / "it's.parquet"
    statement = text.format(file=str(path).replace("'", "''"))
    with pytest.raises(Unsupported, match=r"COPY writes files.*allow_files=True"):
        catalog.sql(statement)
    assert not path.exists()
    expected = duckdb.sql(query).fetchall()
    result = catalog.sql(statement, allow_files=True)
    assert result.to_pylist() == [{"copied": len(expected)}]
    assert sorted(duckdb.read_parquet(str(path)).fetchall()) == expected


def test_copy_takes_options_and_a_parameter_and_tells_what_is_wrong(
    catalog: Catalog, tmp_path: Path
) -> None:
    folder = tmp_path / "by a"
    text = "COPY (SELECT a, a * 2 AS b FROM s.t) TO ? (FORMAT csv, PARTITION_BY (a))"
    catalog.sql(text, [str(folder)], allow_files=True)
    assert [path.parent.name for path in folder.rglob("*.csv")] == ["a=1"]
    for wrong, message in (
        ("COPY s.t FROM 'x.csv'", "COPY … FROM is not supported; use INSERT"),
        ("COPY (SELECT nope FROM s.t) TO 'x.csv'", "column 14: .*nope"),
        ("COPY (DELETE FROM s.t) TO 'x.csv'", "column 7"),
        ("COPY s.t TO x", "expected the name of a file"),
        ("COPY s.t TO 'x.csv' (FORMAT csv)) TO 'y.csv'", "syntax error"),
    ):
        with pytest.raises((InvalidInput, Unsupported), match=message):
            catalog.sql(wrong, allow_files=True)
    assert catalog.sql("SELECT a FROM s.t").to_pylist() == [{"a": 1}]


@pytest.mark.parametrize(
    "statement",
    [
        "SET threads = 1",
        "RESET threads",
        "SET lock_configuration = false",
        "SET allowed_configs = ['threads']",
        "SET python_enable_replacements = true",
        "SET autoload_known_extensions = true",
        "SET file_search_path = '/'",
        "SET profiling_output = '/tmp/x'",
        "PRAGMA enable_profiling",
    ],
)
def test_what_slips_through_cannot_change_a_setting(statement: str) -> None:
    cursor = Database().cursor()
    with pytest.raises(duckdb.Error, match="locked"):
        cursor.execute(statement)
    for own in OWN_SETTINGS:
        cursor.execute(f"RESET {own}")


def test_the_engine_of_a_server_opens_no_local_file_and_is_locked(tmp_path: Path) -> None:
    path = tmp_path / "secret.csv"
    path.write_text("a\n1\n")
    engine = sandbox(max_memory=1 << 28)
    for statement in (f"FROM read_csv('{path}')", f"COPY (SELECT 1) TO '{tmp_path}/b.csv'"):
        with pytest.raises(duckdb.PermissionException):
            engine.execute(statement)
    for name in ("disabled_filesystems", "memory_limit", "temp_directory", "threads"):
        with pytest.raises(duckdb.Error, match="locked"):
            engine.execute(f"RESET {name}")


def test_columns_that_differ_in_case_alone_are_refused(catalog: Catalog) -> None:
    with pytest.raises(InvalidInput, match="two columns are called A"):
        catalog.sql("CREATE TABLE s.x (a INT, A INT)")
    with pytest.raises(InvalidInput, match="two columns A"):
        catalog.sql('CREATE TABLE s.x AS SELECT 1 AS a, 2 AS "A"')


def test_a_view_is_judged_when_it_is_used(catalog: Catalog, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("secret")
    target = tmp_path / "written"
    catalog.sql("CREATE VIEW s.v AS SELECT a FROM s.t")
    views = catalog._pointers.views
    for text in (
        f"SELECT content AS a FROM read_text('{secret}')",
        f"SELECT 1 AS a$b$; COPY (SELECT 42) TO '{target}'; --$b$",
        f"SELECT 1 AS a) ; COPY (SELECT 42) TO '{target}'; --",
        "SELECT 1 AS a FROM s.t) t, (SELECT 2 AS b",
    ):
        base = views.load("s.v")
        (version,) = base.metadata["versions"]
        stored = [{"type": "sql", "sql": text, "dialect": "duckdb"}]
        changed = {**base.metadata, "versions": [{**version, "representations": stored}]}
        views.replace(base, changed)
        for allow_files in (False, True):
            with pytest.raises(FrazilError, match=r"view s\.v: "):
                catalog.sql("SELECT * FROM s.v", allow_files=allow_files).to_arrow()
        assert not target.exists()


@pytest.mark.parametrize(
    "message",
    [
        "INTERNAL Error: Attempted to access index 1",
        'INTERNAL Error: {"exception_type":"INTERNAL","exception_message":"Attempted to access"}',
        '{"exception_type":"FATAL","exception_message":"Attempted to access"}',
    ],
)
@pytest.mark.parametrize(
    ("owner", "method", "text"),
    [
        (Interruptible, "call", "SELECT a + 1 AS b FROM s.t"),
        (SqlEngine, "run_own", "SELECT b FROM s.v"),
    ],
    ids=["reading", "binding"],
)
def test_a_crash_of_the_engine_ends_one_query_only(
    catalog: Catalog,
    monkeypatch: pytest.MonkeyPatch,
    message: str,
    owner: type,
    method: str,
    text: str,
) -> None:
    """No query is known that crashes DuckDB 2.0, so that the test says what such a crash says."""
    catalog.sql("CREATE VIEW s.v AS SELECT a + 1 AS b FROM s.t")
    waiting = catalog.sql("SELECT a FROM s.t")
    database = catalog._engine
    assert database is not None
    first = database._connection
    assert first is not None

    def crash(*_: object) -> None:
        first.close()
        raise duckdb.InternalException(message)

    with monkeypatch.context() as patches:
        patches.setattr(owner, method, crash)
        with pytest.raises(FrazilError, match="ttempted to access"):
            catalog.sql(text).to_arrow()
    assert database._connection is not first
    assert catalog.sql(text).to_pylist() == [{"b": 2}]
    del waiting  # of the database that is gone


def test_functions_that_make_rows_are_those_of_the_engine() -> None:
    own = duckdb.sql(
        "SELECT function_name FROM duckdb_functions() WHERE function_type = 'macro' "
        "AND macro_definition ILIKE '%unnest%'"
    ).fetchall()
    assert {name for (name,) in own} | {"unnest", "unlist"} == GIVES_ROWS


# Random texts

WORDS = [
    *("SELECT", "1", "a", "FROM", "s.t", "AS", "b", ";", "COPY", "(", ")", "TO", "'f'", "WHERE"),
    *("'", '"', "$$", "$x$", "$", "--", "\n", "/*", "*/", "E'", "\\", "`", "''", "é", "\u00a0"),
    *("WITH", "x", ",", "UNION", "ALL", "VALUES", "read_text('f')", "glob('f')", "E'\\''", "a$b$"),
    *("EXPLAIN", "DESCRIBE", "SUMMARIZE", "CREATE VIEW s.v AS", "PIVOT", "ON", "USING", "IN"),
    *("INSERT INTO s.t", "DROP TABLE s.t", "SET threads = 1", "ATTACH 'f'", "FOR VERSION AS OF 1"),
]
ROUNDS = int(os.environ.get("FRAZIL_JUDGE_ROUNDS", "1500"))


def table_functions(tree: Any) -> set[str]:
    """The table functions that a tree of DuckDB calls, wherever they are."""
    if isinstance(tree, list):
        return {name for part in tree for name in table_functions(part)}
    if not isinstance(tree, dict):
        return set()
    called = {tree["function"]["function_name"]} if tree.get("type") == "TABLE_FUNCTION" else set()
    return called | table_functions(list(tree.values()))


def test_what_runs_is_what_was_judged(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the text is, the engine gets one SELECT at a time, with the tree that was judged:
    never more statements than DuckDB sees in it, and no function that reads files."""
    seed = int(os.environ.get("FRAZIL_SEED", "11"))
    dice = random.Random(seed)
    given: list[list[str]] = []
    original = Execution.judged

    def judged(self: Execution, ran: object) -> object:
        statement = original(self, ran)  # type: ignore[arg-type]
        given.append([statement.type.name])
        text = getattr(ran, "text", "")
        assert not {"read_text", "glob"} & table_functions(
            duckdb_parser.query_json(Source(text))
        ), text
        return statement

    monkeypatch.setattr(Execution, "judged", judged)
    monkeypatch.chdir(tmp_path)
    before = sorted(os.listdir(tmp_path))
    ran = 0
    for _ in range(ROUNDS):
        size = dice.randint(1, 14)
        joint = dice.choice(["", " ", " ", " "])
        text = joint.join(dice.choice(WORDS) for _ in range(size))
        if dice.random() < 0.6:
            text = f"SELECT a FROM s.t {text}"
        given.clear()
        session = catalog.session()
        try:
            results = [result.to_arrow() for result in session.results(text)]
        except FrazilError:
            results = []
        finally:
            session.close()
        kinds = engine_kinds(text)
        assert all(kind == ["SELECT"] for kind in given), (seed, text)
        if kinds is not None and results:
            assert len(results) <= len(kinds), (seed, text)
            ran += 1
        assert sorted(os.listdir(tmp_path)) == before, (seed, text)
        if not catalog.table_exists("s.t"):
            catalog.create_table("s.t", [{"a": 1}])
    assert ran > ROUNDS // 100


def engine_kinds(text: str) -> list[str] | None:
    try:
        return [statement.type.name for statement in duckdb.extract_statements(text)]
    except duckdb.Error:
        return None


# The second fence: what DuckDB itself refuses, whatever the judge lets through

READS = [
    "FROM read_text('{file}')",
    "FROM read_blob('{file}')",
    "FROM read_csv('{file}')",
    "FROM read_json('{file}')",
    "FROM read_parquet('{file}')",
    "FROM parquet_metadata('{file}')",
    "FROM parquet_schema('{file}')",
    "FROM sniff_csv('{file}')",
    "FROM glob('{folder}/*')",
    "FROM '{file}'",
    'FROM "{file}"',
    "FROM read_text('{inside}/../{name}')",
    "FROM read_text('{link}')",
    "FROM query('FROM read_text(''{file}'')')",
    "FROM query_table('{file}')",
    "FROM query_table(['{file}'])",
    "WITH q AS (FROM read_text('{file}')) FROM q",
    "FROM range(2) r, LATERAL (FROM read_text('{file}')) q",
    "SELECT (SELECT content FROM read_text('{file}'))",
    "SELECT list_transform([1], lambda x: x + (SELECT size FROM read_blob('{file}')))",
    "DESCRIBE FROM read_csv('{file}')",
    "SUMMARIZE FROM read_csv('{file}')",
    "EXPLAIN ANALYZE FROM read_csv('{file}')",
    "PIVOT (FROM read_text('{file}')) ON size USING count(*)",
    "SELECT * FROM s.t WHERE a IN (SELECT size FROM read_blob('{file}'))",
    "FROM (VALUES (1)) v(a) POSITIONAL JOIN read_text('{file}')",
    "SELECT 1 UNION ALL SELECT size FROM read_blob('{file}')",
    "SELECT 1 ORDER BY (SELECT size FROM read_blob('{file}'))",
    "SELECT 1 LIMIT (SELECT size FROM read_blob('{file}'))",
    "FROM s.t AT (VERSION => (SELECT content FROM read_text('{file}')))",
]
OTHERS = [
    "COPY (SELECT 42) TO '{target}'",
    "COPY (SELECT 42) TO '{target}' (FORMAT parquet)",
    "CREATE TABLE x (a VARCHAR); COPY x FROM '{file}'",
    "ATTACH '{target}' AS x",
    "ATTACH 'http://localhost/x.db' AS x",
    "EXPORT DATABASE '{target}'",
    "IMPORT DATABASE '{folder}'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{file}'",
    "SET enable_external_access = true",
    "SET allowed_directories = ['/']",
    "SET allowed_paths = ['{file}']",
    "RESET enable_external_access",
    "SET lock_configuration = false",
    "SET home_directory = '{folder}'",
    "SET python_enable_replacements = true",
    "PRAGMA enable_external_access = true",
    "CREATE PERSISTENT SECRET x (TYPE s3, KEY_ID 'a', SECRET 'b')",
    "PREPARE p AS FROM read_text('{file}'); EXECUTE p",
    "CREATE TEMP VIEW z AS FROM read_csv('{file}'); FROM z",
    "CREATE TEMP MACRO z() AS TABLE FROM read_text('{file}'); FROM z()",
]


@pytest.fixture
def attack(tmp_path: Path) -> dict[str, str]:
    """A file beside the warehouse, and a link to it from inside."""
    secret = tmp_path / "secret.csv"
    secret.write_text("secret\n1\n")
    inside = tmp_path / "warehouse"
    inside.mkdir(exist_ok=True)
    (inside / "link.csv").symlink_to(secret)
    return {
        "file": str(secret),
        "folder": str(tmp_path),
        "name": secret.name,
        "inside": str(inside),
        "link": str(inside / "link.csv"),
        "target": str(tmp_path / "written"),
    }


@pytest.mark.parametrize("text", [*READS, *OTHERS])
def test_the_engine_of_a_catalog_opens_no_other_file(
    catalog: Catalog, attack: dict[str, str], text: str
) -> None:
    assert catalog.sql("SELECT a FROM s.t").to_pylist() == [{"a": 1}]
    assert catalog._engine is not None
    engine = catalog._engine.cursor()
    engine.execute("CREATE SCHEMA s; CREATE TABLE s.t (a BIGINT)")
    before = sorted(os.listdir(attack["folder"]))
    with pytest.raises(duckdb.Error) as caught:
        engine.execute(text.format(**attack)).fetchall()
    assert "secret\n" not in str(caught.value)
    assert sorted(os.listdir(attack["folder"])) == before


@pytest.mark.parametrize("text", [*READS, *OTHERS])
def test_the_judge_lets_none_of_these_through(
    catalog: Catalog, attack: dict[str, str], text: str
) -> None:
    before = sorted(os.listdir(attack["folder"]))
    session = catalog.session()
    for statement in (text, f"CREATE VIEW s.v AS {text}", f"CREATE TABLE s.n AS {text}"):
        with pytest.raises(FrazilError) as caught:
            [result.to_arrow() for result in session.results(statement.format(**attack))]
        assert "secret\n" not in str(caught.value)
    assert sorted(os.listdir(attack["folder"])) == before
    assert catalog.sql("SHOW VIEWS IN s").to_pylist() == []


def test_tables_that_lie_elsewhere_are_read_and_changed(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "alias").symlink_to(real)
    with frazil.connect(tmp_path / "alias" / "it's [one]") as catalog:
        catalog.sql("CREATE TABLE s.near (k BIGINT, v VARCHAR)")
        catalog.sql(f"CREATE TABLE s.far (k BIGINT, v VARCHAR) LOCATION '{tmp_path / 'far'}'")
        linked = tmp_path / "elsewhere"
        linked.mkdir()
        (tmp_path / "moved").symlink_to(linked)
        catalog.sql(f"CREATE TABLE s.linked (k BIGINT, v VARCHAR) LOCATION '{tmp_path / 'moved'}'")
        for table in ("s.near", "s.far", "s.linked"):
            catalog.sql(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
            for _ in range(2):  # the first time through the storage, then by DuckDB itself
                catalog.sql(f"UPDATE {table} SET v = v || '!' WHERE k = 2")
                catalog.sql(
                    f"MERGE INTO {table} t USING s.near n ON t.k = n.k + 1 "
                    "WHEN MATCHED AND t.k = 3 THEN UPDATE SET v = n.v"
                )
                assert catalog.sql(f"SELECT count(*) AS n FROM {table}").to_pylist() == [{"n": 3}]
            catalog.sql(f"DELETE FROM {table} WHERE k = 1")
            rows = catalog.sql(f"SELECT k, v FROM {table} ORDER BY k").to_pylist()
            assert [row["k"] for row in rows] == [2, 3]
            assert rows[0]["v"] == "b!!"


def test_files_may_be_read_inside_of_a_transaction_that_allows_it(
    catalog: Catalog, tmp_path: Path
) -> None:
    path = tmp_path / "rows.parquet"
    duckdb.sql("SELECT 1 AS n").write_parquet(str(path))
    delete = f"DELETE FROM s.t WHERE a IN (SELECT n FROM read_parquet('{path}'))"
    with pytest.raises(FrazilError):
        catalog.sql(delete)
    session = catalog.session()
    session.sql("BEGIN", allow_files=True)
    session.sql(delete, allow_files=True)
    session.sql("COMMIT")
    assert catalog.sql("SELECT count(*) AS n FROM s.t").to_pylist() == [{"n": 0}]
