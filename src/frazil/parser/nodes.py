"""Queries and expressions as a few types. `raw` is DuckDB's own node; offsets count characters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from frazil.value_classes import dataclass, field

Json = Mapping[str, Any]


# Expressions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Expression:
    """An expression that the other types do not describe; `children` are those inside it."""

    kind: str
    raw: Json = field(repr=False)
    start: int | None = None
    alias: str = ""
    children: tuple[Expression, ...] = ()
    queries: tuple[Query, ...] = ()
    """Queries directly inside it."""

    def walk(self) -> Iterator[Expression]:
        """It and every expression inside it, but not inside its queries."""
        waiting: list[Expression] = [self]
        while waiting:  # a long sum is as deep as it is long
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnRef(Expression):
    """A column: its name, after those of its table, before those of parts of a struct."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Constant(Expression):
    """A literal: None, bool, int, Decimal, float, or str. `type` is its type's name."""

    value: Any
    type: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cast(Expression):
    """`children[0]` as another type, whose name is in upper case."""

    type: str
    is_try: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison(Expression):
    """`left operator right`; operators are =, <>, <, <=, >, >=, and the two of DISTINCT FROM."""

    operator: str

    @property
    def left(self) -> Expression:
        """The left side."""
        return self.children[0]

    @property
    def right(self) -> Expression:
        """The right side."""
        return self.children[1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Between(Expression):
    """`children` are the value and its two bounds."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Conjunction(Expression):
    """Conditions joined by AND, or by OR."""

    operator: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Operator(Expression):
    """NOT, IS NULL, IS NOT NULL, IN, NOT IN, COALESCE and others, by name."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Function(Expression):
    """A call, also of an operator such as + or ~~ (LIKE)."""

    name: str
    is_plain: bool
    """Whether it has arguments alone: no DISTINCT, FILTER or ORDER BY, no schema of a user's."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SubqueryExpression(Expression):
    """A query as a value, EXISTS, or beside ANY; `children` is what is compared with it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Window(Expression):
    """A window function."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Star(Expression):
    """`*` or `t.*`; `is_plain` if it has no EXCLUDE, REPLACE, RENAME or COLUMNS."""

    relation: str
    is_plain: bool


# What FROM has


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableRef:
    """Something that FROM has and the other types do not describe."""

    kind: str
    raw: Json = field(repr=False)
    start: int | None = None
    alias: str = ""
    columns: tuple[str, ...] = ()
    """Names that the alias gives to the columns."""
    is_sampled: bool = False
    expressions: tuple[Expression, ...] = ()
    inside: tuple[TableRef, ...] = ()
    queries: tuple[Query, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BaseTable(TableRef):
    """A name."""

    path: tuple[str, ...]
    has_at: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JoinRef(TableRef):
    """`inside` are both sides. `type` is INNER, LEFT, RIGHT, OUTER, SEMI or ANTI, `method` is
    REGULAR, NATURAL, CROSS, ASOF, POSITIONAL or DEPENDENT."""

    type: str
    method: str
    condition: Expression | None
    using: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SubqueryRef(TableRef):
    """A query in brackets."""

    query: Query


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableFunction(TableRef):
    """A call."""

    function: Expression


# Queries


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cte:
    """A query of WITH."""

    name: str
    columns: tuple[str, ...]
    query: Query

    @property
    def is_recursive(self) -> bool:
        """Whether it refers to itself."""
        return self.query.kind == "RECURSIVE_CTE_NODE"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Query:
    """A query that the other types do not describe."""

    kind: str
    raw: Json = field(repr=False)
    ctes: tuple[Cte, ...] = ()
    expressions: tuple[Expression, ...] = ()
    """Those of ORDER BY, LIMIT and the like."""
    queries: tuple[Query, ...] = ()
    is_limited: bool = False
    """LIMIT, OFFSET, or DISTINCT ON: which rows there are depends on the others."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Select(Query):
    """SELECT."""

    outputs: tuple[Expression, ...]
    source: TableRef | None
    where: Expression | None
    keys: tuple[Expression, ...]
    """GROUP BY."""
    has_plain_keys: bool
    """Whether there is one grouping set, named by its keys."""
    is_grouped: bool
    having: Expression | None
    qualify: Expression | None
    is_sampled: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SetOperation(Query):
    """UNION, EXCEPT, INTERSECT; UNION_BY_NAME. `queries` are its sides."""

    operator: str


def conjuncts(condition: Expression | None) -> Iterator[Expression]:
    """The conditions that all have to hold."""
    if condition is None:
        return
    if isinstance(condition, Conjunction) and condition.operator == "AND":
        for child in condition.children:
            yield from conjuncts(child)
    else:
        yield condition


def walk_tables(ref: TableRef | None) -> Iterator[TableRef]:
    """What FROM has, with what is inside of joins, but not inside of queries."""
    if ref is None:
        return
    yield ref
    for inner in ref.inside:
        yield from walk_tables(inner)


def walk_queries(query: Query) -> Iterator[Query]:
    """A query and every query inside it, of WITH first."""
    yield query
    for cte in query.ctes:
        yield from walk_queries(cte.query)
    for inner in direct_queries(query):
        yield from walk_queries(inner)


def direct_queries(query: Query) -> Iterator[Query]:
    """The queries in a query's own clauses, without those of WITH."""
    yield from query.queries
    if isinstance(query, Select):
        for ref in walk_tables(query.source):
            yield from ref.queries
    for node in own_expressions(query):
        yield from node.queries


def expressions_of(query: Query) -> Iterator[Expression]:
    """Every expression of a query and of the queries inside it."""
    for inner in walk_queries(query):
        yield from own_expressions(inner)


def own_expressions(query: Query) -> Iterator[Expression]:
    """Every expression of a query, without those of the queries inside it."""
    tops = list(query.expressions)
    if isinstance(query, Select):
        tops += [*query.outputs, *query.keys]
        tops += [e for e in (query.where, query.having, query.qualify) if e is not None]
        for ref in walk_tables(query.source):
            tops += ref.expressions
    for top in tops:
        yield from top.walk()
