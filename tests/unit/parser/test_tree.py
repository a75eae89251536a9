"""DuckDB's tree as nodes, the same from every version of it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from frazil.errors import InvalidInput, Unsupported
from frazil.parser import duckdb_parser, judge
from frazil.parser import nodes as n
from frazil.parser.edits import NewName, is_renamed, rewrite
from frazil.parser.tokens import Part, Source
from frazil.parser.tree import parse_expression, parse_query


def select(text: str) -> n.Select:
    query = parse_query(text)
    assert isinstance(query, n.Select)
    return query


def base_tables(query: n.Query) -> list[n.BaseTable]:
    return [
        ref
        for inner in n.walk_queries(query)
        if isinstance(inner, n.Select)
        for ref in n.walk_tables(inner.source)
        if isinstance(ref, n.BaseTable)
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-1", -1),
        ("9223372036854775808", 2**63),
        ("-170141183460469231731687303715884105727", -(2**127) + 1),
        ("1.10", Decimal("1.10")),
        ("12345678901234567890123456789.12345", Decimal("12345678901234567890123456789.12345")),
        ("1e3", 1000.0),
        ("'é''s'", "é's"),
        ("true", True),
        ("FALSE", False),
        ("NULL", None),
        ("$$x$$", "x"),
        ("E'\\x41'", "A"),
    ],
)
def test_constants_have_their_values(text: str, value: Any) -> None:
    node = parse_expression(text)
    assert isinstance(node, n.Constant)
    assert (node.value, type(node.value)) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    [
        "1) FROM x --",
        "1) + (2",
        "1, 2",
        "1 a",
        "1 AS a",
        "SELECT 1",
        "ALL 1",
        "DISTINCT 1",
        "1;",
        "1; SELECT 2",
        "x WINDOW w AS ()",
        "*",
        "t.*",
        "1 FROM t",
        "1 LIMIT 1",
        "1 UNION SELECT 2",
        "1 USING SAMPLE 10%",
        "",
        "1 /* ",
        "1 --\n) FROM x",
    ],
)
def test_text_that_is_not_exactly_one_expression_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_expression(text)


@pytest.mark.parametrize(
    "text",
    [
        "a IS DISTINCT FROM b",
        "[x + 1 FOR x IN l]",
        "(SELECT max(a) FROM t)",
        "count(*) FILTER (a > 1)",
        "CASE WHEN a THEN 1 END -- why",
        "(1, 2)",
        "EXISTS (SELECT 1)",
    ],
)
def test_one_expression_is_taken(text: str) -> None:
    assert parse_expression(text).raw


def test_columns_have_names_and_offsets() -> None:
    text = 'a.b + é.z * "q q"'
    columns = [node for node in parse_expression(text).walk() if isinstance(node, n.ColumnRef)]
    assert [(node.names, text[node.start or 0 :][:1]) for node in columns] == [
        (("a", "b"), "a"),
        (("é", "z"), "é"),
        (("q q",), '"'),
    ]


def test_tables_have_paths_aliases_and_offsets() -> None:
    text = 'SELECT * FROM é.a x(p, q), "s t".b, LATERAL (SELECT 1 FROM u.v AT (VERSION => 3))'
    tables = base_tables(parse_query(text))
    shown = [(t.path, t.alias, t.columns, t.has_at) for t in tables]
    assert shown == [
        (("é", "a"), "x", ("p", "q"), False),
        (("s t", "b"), "", (), False),
        (("u", "v"), "", (), True),
    ]
    assert [text[t.start or 0 :][:1] for t in tables] == ["é", '"', "u"]


def test_conditions_are_split_at_and() -> None:
    found = list(n.conjuncts(select("SELECT 1 FROM t WHERE a = 1 AND (b < 2 AND NOT c)").where))
    assert [type(node).__name__ for node in found] == ["Comparison", "Comparison", "Operator"]


@pytest.mark.parametrize(
    ("text", "plain"),
    [("a", True), ("a, b", True), ("ROLLUP (a)", False), ("()", False), ("ALL", False)],
)
def test_plain_keys_of_groups_are_told_from_grouping_sets(text: str, plain: bool) -> None:
    query = select(f"SELECT a, b FROM t GROUP BY {text}")
    assert query.has_plain_keys is plain
    assert query.is_grouped


@pytest.mark.parametrize(
    ("text", "limited"),
    [
        ("SELECT a FROM t LIMIT 1", True),
        ("SELECT a FROM t OFFSET 1", True),
        ("SELECT DISTINCT ON (a) a FROM t", True),
        ("SELECT a FROM t LIMIT 10%", True),
        ("SELECT DISTINCT a FROM t ORDER BY a", False),
    ],
)
def test_queries_whose_rows_depend_on_others_are_known(text: str, limited: bool) -> None:
    assert parse_query(text).is_limited is limited


def test_common_table_expressions_have_columns_and_know_recursion() -> None:
    query = parse_query(
        "WITH RECURSIVE a(x) AS (SELECT 1), r AS (SELECT 1 AS i UNION ALL SELECT i FROM r) "
        "SELECT * FROM a, r"
    )
    shown = [(cte.name, cte.columns, cte.is_recursive) for cte in query.ctes]
    assert shown == [("a", ("x",), False), ("r", (), True)]


def test_set_operations_have_sides() -> None:
    query = parse_query("SELECT 1 UNION ALL BY NAME SELECT 2")
    assert isinstance(query, n.SetOperation)
    assert (query.operator, len(query.queries)) == ("UNION_BY_NAME", 2)


def test_errors_have_positions_in_characters() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_query("SELECT 'é',\n 'é' FROM FROM x")
    assert caught.value.position == (2, 11)


def test_two_queries_are_not_one() -> None:
    with pytest.raises(InvalidInput, match="expected one query, found 2"):
        parse_query("SELECT 1; SELECT 2")


def test_what_is_not_a_query_has_no_tree() -> None:
    with pytest.raises(InvalidInput):
        parse_query("COPY (SELECT 1) TO '/tmp/never'")


def test_text_nested_too_deeply_is_refused_with_words() -> None:
    with pytest.raises(InvalidInput, match="nested too deeply"):
        parse_query("SELECT " + "+".join(["1"] * 5000))


def test_a_tree_is_asked_for_once() -> None:
    parse_query("SELECT 41 + 1")
    before = duckdb_parser.calls
    parse_query("SELECT 41 + 1")
    assert duckdb_parser.calls == before


def test_constant_expressions_have_values() -> None:
    node = parse_expression("2 * 3 || 'a'")
    assert duckdb_parser.values_of([node.raw]) == ("6a",)


# Edits


def renamed(text: str, new: str, alias: str) -> bool:
    query = parse_query(text)
    (table,) = base_tables(query)
    assert table.start is not None
    edits = [(table.start, table.start + len(".".join(table.path)), new)]
    after = rewrite(Source(text), [Part(0, len(text))], edits)
    return is_renamed(query, after.text, {table: NewName(path=("v1",), alias=alias)}, {}, {})


def test_an_edited_text_has_the_same_tree_with_other_names() -> None:
    assert renamed("SELECT t.a FROM s.t WHERE t.a = 's.t'", 'v1 AS "t"', "t")


@pytest.mark.parametrize("new", ["v1", "v1 AS t, v2", "v1 AS t WHERE true --", "v1 AS u"])
def test_an_edit_that_changes_more_is_seen(new: str) -> None:
    assert not renamed("SELECT a FROM s.t", new, "t")


def test_positions_are_mapped_back_through_edits() -> None:
    source = Source("SELECT a FROM s.t WHERE b")
    made = rewrite(source, [Part(0, len(source.text))], [(14, 17, "something_longer AS t")])
    assert made.origin(made.text.index("WHERE")) == source.text.index("WHERE")


# The judge


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM pandas_scan(NULL)",
        "SELECT * FROM glob('*')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM json_execute_serialized_sql('{}')",
        "SELECT (SELECT max(content) FROM read_text('x'))",
        "WITH x AS (SELECT * FROM parquet_scan('x')) SELECT 1",
        "SELECT 1 ORDER BY (SELECT 1 FROM glob('x'))",
        "SELECT * FROM range(3) r, LATERAL (SELECT * FROM glob('x'))",
        "SELECT current_setting('threads')",
        "SELECT getenv('HOME')",
        "SELECT GetEnv('HOME')",
        "SELECT getvariable('x')",
        "SELECT [getenv(x) FOR x IN ['a']]",
        "SELECT pg_sleep(1)",
        "SELECT a.getenv() FROM s.t",
        "SELECT * FROM (SHOW TABLES)",
        "SHOW ALL TABLES",
        "SELECT * FROM (DESCRIBE SELECT * FROM glob('x'))",
        "PIVOT (SELECT * FROM glob('x')) ON file IN ('a') USING count(*)",
        "SELECT 1 LIMIT (SELECT count(*) FROM glob('x'))",
        "VALUES ((SELECT 1 FROM glob('x')))",
        "SELECT sum(1) OVER (ORDER BY (SELECT 1 FROM glob('x')))",
    ],
)
def test_what_reads_files_or_the_process_is_refused(text: str) -> None:
    with pytest.raises(Unsupported):
        judge.check(parse_query(text), Source(text))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM range(3), unnest([1]), (VALUES (1)) v, s.t",
        "SELECT abs(1), count(*), main.abs(2) FROM generate_series(1, 2)",
        "SUMMARIZE SELECT 1",
        "PIVOT s.t ON a IN ('x') USING sum(b)",
        "SELECT pg_typeof(1), now(), uuid()",
        "SELECT a.lower(), t.a.lower() FROM s.t",
    ],
)
def test_what_makes_rows_from_values_is_allowed(text: str) -> None:
    judge.check(parse_query(text), Source(text))


def test_files_may_be_allowed() -> None:
    text = "SELECT * FROM read_parquet('x.parquet')"
    judge.check(parse_query(text), Source(text), allow_files=True)


HARMLESS = {
    *("current_database", "current_date", "current_schema", "current_schemas", "error"),
    *("gen_random_uuid", "get_current_time", "get_current_timestamp", "now", "random", "setseed"),
    *("stats", "today", "transaction_timestamp", "uuid", "uuidv4", "uuidv7"),
}
"""They change between calls, and show nothing but the time, chance, and names that are ours."""


def test_every_function_that_depends_on_more_than_its_arguments_was_judged() -> None:
    import duckdb

    rows = duckdb.connect().execute(
        "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'scalar' AND "
        "(stability <> 'CONSISTENT' OR has_side_effects)"
    )
    names = {name for (name,) in rows.fetchall()}
    assert names
    assert names <= HARMLESS | judge.REFUSED_FUNCTIONS
