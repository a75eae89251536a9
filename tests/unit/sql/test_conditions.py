"""Which conditions may prune which table; expected by hand, from what SQL means."""

from __future__ import annotations

import pytest

from frazil.iceberg.types import IcebergType, LongType, StringType
from frazil.parser import nodes as n
from frazil.parser.tree import parse_expression, parse_query
from frazil.sql.bind.pushed_conditions import conditions

COLUMNS: dict[str, dict[str, IcebergType | None]] = {
    "o": {"id": LongType(), "k": LongType(), "d": StringType(), "p": LongType()},
    "c": {"k": LongType(), "name": StringType(), "seg": StringType()},
    "l": {"id": LongType(), "sd": StringType()},
    "w": {"k": StringType(), "id": LongType()},
}


def shown(node: n.Expression) -> str:
    """An expression as text, for what the queries below use."""
    inside = [shown(child) for child in node.children]
    match node:
        case n.ColumnRef():
            return ".".join(node.names)
        case n.Constant():
            return repr(node.value)
        case n.Comparison():
            return f"{inside[0]} {node.operator} {inside[1]}"
        case n.Conjunction():
            return f" {node.operator} ".join(inside)
        case n.Between():
            return "{} BETWEEN {} AND {}".format(*inside)
        case n.Operator(name="IN"):
            return f"{inside[0]} IN ({', '.join(inside[1:])})"
        case n.Operator():
            return f"{inside[0]} {node.name}"
        case n.Cast():
            return f"CAST({inside[0]} AS {node.type})"
        case n.Function():
            return f"{inside[0]} {node.name} {inside[1]}"
    raise AssertionError(node)


def over(text: str, *, outer: str = "") -> dict[str, list[list[str]]]:
    """Conditions by table, in the order of the tables in the text."""
    given = [parse_expression(outer)] if outer else []
    query = parse_query(text)
    pushed = conditions(query, lambda table: COLUMNS.get(table.path[-1]), outer=given)
    named: dict[str, list[list[str]]] = {}
    for table in sorted(pushed.tables, key=lambda table: table.start or 0):
        name = table.path[-1]
        alternatives = [sorted(map(shown, each)) for each in pushed.tables[table]]
        named[name if name not in named else f"{name}2"] = alternatives
    return named


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT * FROM o WHERE id = 3 AND (p = 1 OR p = 2)",
            {"o": [["id = 3", "p = 1 OR p = 2"]]},
        ),
        ("SELECT * FROM s.o WHERE s.o.id = 3 AND o.p.x = 4", {"o": [["id = 3", "p.x = 4"]]}),
        ("FROM o WHERE id = 1", {"o": [["id = 1"]]}),
        ("SELECT *, row_number() OVER () FROM o WHERE id = 2", {"o": [["id = 2"]]}),
    ],
)
def test_conjuncts_of_where_are_found(text: str, expected: dict[str, list[list[str]]]) -> None:
    assert over(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # WHERE on the null-extended side counts only where it refuses nulls.
        (
            "SELECT * FROM o LEFT JOIN c ON o.k = c.k WHERE c.name IS NULL AND o.id = 1",
            {"o": [["id = 1"]], "c": [[]]},
        ),
        (
            "SELECT * FROM o LEFT JOIN c ON o.k = c.k WHERE c.name = 'x'",
            {"o": [[]], "c": [["name = 'x'"]]},
        ),
        (
            "SELECT * FROM o LEFT JOIN c ON o.k = c.k WHERE c.name = 'x' OR c.name IS NULL",
            {"o": [[]], "c": [[]]},
        ),
        # ON of a LEFT JOIN chooses among the right side's rows; the left side's all stay.
        (
            "SELECT * FROM o LEFT JOIN c ON o.k = c.k AND c.seg = 'x' AND o.id = 2",
            {"o": [[]], "c": [["seg = 'x'"]]},
        ),
        (
            "SELECT * FROM o RIGHT JOIN c ON o.k = c.k AND c.seg = 'x' AND o.id = 2",
            {"o": [["id = 2"]], "c": [[]]},
        ),
        (
            "SELECT * FROM o FULL JOIN c ON o.k = c.k AND o.id = 2 WHERE c.seg = 'x'",
            {"o": [[]], "c": [["seg = 'x'"]]},
        ),
        (
            "SELECT * FROM o ANTI JOIN c ON o.k = c.k AND o.id = 2 AND c.seg = 'x'",
            {"o": [[]], "c": [["seg = 'x'"]]},
        ),
        (
            "SELECT * FROM o SEMI JOIN c ON o.k = c.k AND o.id = 2 AND c.seg = 'x'",
            {"o": [["id = 2"]], "c": [["seg = 'x'"]]},
        ),
        # Later joins do not undo what an inner join asked for before.
        (
            "SELECT * FROM o JOIN c ON o.k = c.k AND o.id = 2 FULL JOIN l ON l.id = o.id",
            {"o": [["id = 2"]], "c": [[]], "l": [[]]},
        ),
        # Which row is nearest, or at a position, depends on rows that fail the condition.
        ("SELECT * FROM o ASOF JOIN l ON o.id >= l.id WHERE l.sd = 1", {"o": [[]], "l": [[]]}),
        ("SELECT * FROM o POSITIONAL JOIN l WHERE o.id = 1", {"o": [[]], "l": [[]]}),
        ("SELECT * FROM o TABLESAMPLE 10% WHERE id = 1", {"o": [[]]}),
        ("SELECT * FROM o WHERE id = 1 USING SAMPLE 3 ROWS", {"o": [[]]}),
    ],
)
def test_joins_let_pass_what_cannot_change_the_result(
    text: str, expected: dict[str, list[list[str]]]
) -> None:
    assert over(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT * FROM o JOIN l ON o.id = l.id WHERE o.id BETWEEN 3 AND 5",
            {"o": [["id BETWEEN 3 AND 5"]], "l": [["id BETWEEN 3 AND 5"]]},
        ),
        (
            "SELECT * FROM o LEFT JOIN l ON o.id = l.id WHERE o.id = 3",
            {"o": [["id = 3"]], "l": [[]]},
        ),
        (
            "SELECT * FROM o, c WHERE o.k = c.k AND ((o.p = 1 AND c.seg = 'a') OR (o.p = 2 AND "
            "o.d > 4 AND c.seg = 'b'))",
            {
                "o": [["p = 1 OR p = 2 AND d > 4"]],
                "c": [["seg = 'a' OR seg = 'b'"]],
            },
        ),
        ("SELECT * FROM o, c WHERE o.p = 1 OR c.seg = 'a'", {"o": [[]], "c": [[]]}),
    ],
)
def test_keys_and_arms_carry_conditions(text: str, expected: dict[str, list[list[str]]]) -> None:
    assert over(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM (SELECT id AS i, p FROM o) q WHERE i = 4 AND p > 1", [["id = 4", "p > 1"]]),
        ("SELECT * FROM (SELECT id + 1 AS i FROM o) WHERE i = 4", [[]]),
        ("SELECT * FROM (SELECT * FROM o LIMIT 3) WHERE id = 1", [[]]),
        (
            "SELECT * FROM (SELECT id, sum(p) s FROM o GROUP BY id) WHERE id = 4 AND s > 1",
            [["id = 4"]],
        ),
        ("SELECT * FROM (SELECT id, sum(p) s FROM o GROUP BY 1) WHERE id = 4", [["id = 4"]]),
        ("SELECT * FROM (SELECT id, rank() OVER (ORDER BY p) r FROM o) WHERE id = 4", [[]]),
        ("SELECT * FROM (SELECT DISTINCT ON (k) id, k FROM o) WHERE id = 4", [[]]),
        ("SELECT * FROM (SELECT DISTINCT id, k FROM o) WHERE id = 4", [["id = 4"]]),
        ("SELECT id FROM o GROUP BY id HAVING id = 3 AND sum(p) > 1", [["id = 3"]]),
        ("SELECT k FROM o GROUP BY CUBE (k) HAVING k = 3", [[]]),
        ("SELECT * FROM o AS x(a, b) WHERE a = 1 AND b > 2", [["id = 1", "k > 2"]]),
        ("SELECT * FROM o AS x(p, k) WHERE p = 1", [[]]),
        ("WITH z(b, a) AS (SELECT id, k FROM o) SELECT * FROM z WHERE a = 1", [["k = 1"]]),
        ("WITH z(k) AS (SELECT id, k FROM o) SELECT * FROM z WHERE k = 1", [[]]),
        ("SELECT * FROM (SELECT id, k FROM o) z(k, id) WHERE id = 1", [["k = 1"]]),
        (
            "WITH z(b, a) AS (SELECT id, k FROM o UNION SELECT k, id FROM c JOIN l USING (k)) "
            "SELECT * FROM z WHERE a = 1",
            [["k = 1"]],
        ),
        ("WITH z(a) AS (SELECT id FROM o) SELECT * FROM z y(b) WHERE b = 1", [[]]),
        ("SELECT k AS id, count(*) FROM o GROUP BY id HAVING id = 3", [[]]),
        ("SELECT * FROM (SELECT k AS id, count(*) FROM o GROUP BY id) WHERE id = 3", [[]]),
        ("SELECT * FROM (SELECT unnest(p), id AS a, k FROM o) q(a, b, c, d) WHERE c = 1", [[]]),
        ("SELECT * FROM (SELECT id FROM o SEMI JOIN c USING (k)) WHERE id = 1", [["id = 1"]]),
        (
            "WITH w AS (SELECT * FROM o WHERE p = 1) SELECT * FROM w WHERE id = 2",
            [["id = 2", "p = 1"]],
        ),
        (
            "WITH o AS (SELECT * FROM o WHERE p = 1) SELECT * FROM o WHERE id = 2",
            [["id = 2", "p = 1"]],
        ),
        (
            "WITH w AS (SELECT * FROM o) SELECT * FROM w WHERE id = 1 UNION ALL "
            "SELECT * FROM w WHERE k = 2",
            [["id = 1"], ["k = 2"]],
        ),
        ("WITH w AS (SELECT * FROM o) SELECT * FROM w a, w b WHERE a.id = 1", [["id = 1"], []]),
        (
            "WITH RECURSIVE r AS (SELECT id FROM o WHERE id = 1 UNION ALL SELECT id + 1 FROM r) "
            "SELECT * FROM r WHERE id = 7",
            [["id = 1"]],
        ),
    ],
)
def test_subqueries_are_looked_through(text: str, expected: list[list[str]]) -> None:
    assert over(text)["o"] == expected


def test_set_operations_push_by_position() -> None:
    found = over("SELECT * FROM (SELECT id, d FROM o UNION ALL SELECT id, sd FROM l) WHERE d = 3")
    assert found == {"o": [["d = 3"]], "l": [["sd = 3"]]}
    found = over("SELECT id FROM o WHERE p = 1 EXCEPT SELECT id FROM l WHERE sd = 2")
    assert found == {"o": [["p = 1"]], "l": [["sd = 2"]]}


def test_conditions_are_carried_between_equal_types_alone() -> None:
    assert over("SELECT * FROM o JOIN w ON o.k = w.k WHERE o.k = 1") == {
        "o": [["k = 1"]],
        "w": [[]],
    }
    found = over("SELECT * FROM (SELECT id, k FROM o UNION ALL SELECT id, k FROM w) WHERE k = 1")
    assert found == {"o": [[]], "w": [[]]}
    found = over("SELECT * FROM (SELECT id, k FROM o UNION ALL SELECT id, k FROM w) WHERE id = 1")
    assert found == {"o": [["id = 1"]], "w": [["id = 1"]]}
    found = over("SELECT * FROM (SELECT id FROM o UNION ALL SELECT id::DOUBLE FROM l) WHERE id = 1")
    assert found == {"o": [[]], "l": [[]]}


def test_a_name_in_two_namespaces_is_two_tables() -> None:
    found = over("SELECT * FROM s.o, r.o WHERE s.o.id = 1 AND r.o.id = 2 AND o.p = 3")
    assert found == {"o": [["id = 1"]], "o2": [["id = 2"]]}


def test_a_correlated_subquery_is_pruned_by_its_own_conditions() -> None:
    found = over(
        "SELECT * FROM o WHERE d = 5 AND EXISTS (SELECT 1 FROM l WHERE l.id = o.id AND sd = 1)"
    )
    assert found == {"o": [["d = 5"]], "l": [["sd = 1"]]}


def test_conditions_over_a_query_reach_its_tables() -> None:
    assert over("SELECT id AS number, p FROM o WHERE p > 0", outer="number = 7") == {
        "o": [["id = 7", "p > 0"]]
    }


def test_conditions_over_columns_that_cannot_be_told_are_left_out() -> None:
    assert over("SELECT * FROM (SELECT * EXCLUDE (k) FROM o) WHERE id = 1") == {"o": [[]]}
    assert over("SELECT * FROM (SELECT * FROM o JOIN c USING (k)) WHERE id = 1")["o"] == [[]]
