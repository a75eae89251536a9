"""Which conditions apply to each table of a query, so that it can be pruned by them.

A condition of a table is one that every row of it which takes part in the result fulfils. Found
are the conjuncts of WHERE, ON and HAVING that name one table alone, through subqueries, CTEs and
set operations, and those that equal join keys of equal types carry over. Where SQL would not allow
it (the null-extended side of an outer join, above LIMIT, beside a window), nothing is carried; what
is not understood is left out. Conditions are never rewritten, only their columns are called by
the names that the table has for them: a wrong simplification would lose rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from frazil.iceberg.types import IcebergType
from frazil.parser import nodes as n
from frazil.sql.bind.from_clause import (
    Conjuncts,
    Ctes,
    CteUse,
    FromClause,
    FromItem,
    Types,
    cte_of,
    is_inner,
    may_prune,
    renamed,
    resolve,
)
from frazil.value_classes import dataclass, field, replace

Columns = Callable[[n.BaseTable], Types | None]
"""The columns of a table of the catalog; None for everything else."""
Output = tuple[str, n.Expression | None, IcebergType | None]
"""Name, expression and type of a query's column, as far as they are known."""
Staged = list[tuple[int, n.Expression]]
"""Conditions, each with the number of the join whose ON it stands in, or one more for WHERE."""
_ROWWISE = frozenset({"~~", "!~~", "prefix", "starts_with", "^@", "+", "-"})
"""Functions that surely are no aggregates."""


@dataclass(slots=True)
class PushedConditions:
    """For every table: alternatives, each a list of conditions that hold together.

    `joined` are pairs of (table, column) that an inner join makes equal.
    """

    tables: dict[n.BaseTable, list[Conjuncts]] = field(default_factory=dict)
    joined: list[tuple[tuple[n.BaseTable, str], tuple[n.BaseTable, str]]] = field(
        default_factory=list
    )


def conditions(
    query: n.Query,
    columns: Columns,
    *,
    outer: Sequence[n.Expression] = (),
    names: Sequence[str] = (),
) -> PushedConditions:
    """The conditions over each table of a query. `outer` are conditions over the query's own
    columns, which are called by `names` if those are given."""
    walk = _Walk(columns)
    walk.query(query, {}, [list(outer)], names)
    count = sum(
        isinstance(ref, n.BaseTable) for inner in n.walk_queries(query) for ref in _tables_of(inner)
    )
    # A use of a WITH query that was passed over would count as one without rows.
    return walk.pushed if walk.seen == count else PushedConditions()


def _tables_of(query: n.Query) -> Iterator[n.TableRef]:
    if isinstance(query, n.Select):
        yield from n.walk_tables(query.source)


class _Walk:
    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.pushed = PushedConditions()
        self.seen = 0

    # Queries

    def query(
        self, node: n.Query, ctes: Ctes, outer: list[Conjuncts], names: Sequence[str] = ()
    ) -> None:
        """Visit a query that is used under alternatives of conditions over its columns."""
        known, own = self._with(node, ctes)
        match node:
            case n.Select():
                self._select(node, known, outer, names)
            case n.SetOperation():
                self._set_operation(node, known, outer, names)
            case _:
                self._inside(node.expressions, node.queries, known)
        # Uses come before definitions: a later CTE may use an earlier one.
        for number, use in reversed(list(enumerate(own))):
            uses = use.uses if use.uses and not use.cte.is_recursive else [[]]
            # Its query can name those before it, and itself if it is recursive.
            hidden = own[number + use.cte.is_recursive :]
            visible = {name: other for name, other in known.items() if other not in hidden}
            visible |= {name: other for name, other in ctes.items() if name not in visible}
            self.query(use.cte.query, visible, uses, use.cte.columns)

    def _with(self, node: n.Query, ctes: Ctes) -> tuple[Ctes, list[CteUse]]:
        visible = dict(ctes)
        defined: list[CteUse] = []
        for cte in node.ctes:
            columns: list[tuple[str, IcebergType | None]] | None = None
            if not cte.is_recursive:
                outputs = self.outputs(cte.query, visible)
                columns = None if outputs is None else _called(outputs, cte.columns)
            use = CteUse(cte=cte, columns=columns)
            visible[cte.name.lower()] = use
            defined.append(use)
        return visible, defined

    def _set_operation(
        self, node: n.SetOperation, ctes: Ctes, outer: list[Conjuncts], names: Sequence[str]
    ) -> None:
        sides = [self.outputs(side, ctes) for side in node.queries[:2]]
        passed = [[]] if node.is_limited or node.operator == "UNION_BY_NAME" else outer
        if any(passed):
            passed = [self._of_all_sides(alternative, sides, names) for alternative in passed]
        first = sides[0] or []
        called = [*names, *(name for name, _, _ in first[len(names) :])]
        for side in node.queries[:2]:
            self.query(side, ctes, passed, called)
        self._inside(node.expressions, node.queries[2:], ctes)

    def _of_all_sides(
        self, conjuncts: Conjuncts, sides: list[list[Output] | None], names: Sequence[str]
    ) -> Conjuncts:
        """Conditions over columns that have one type in all sides: where types differ, values are
        compared as another type than the side has them in."""
        left, right = sides
        if left is None or right is None or len(left) != len(right):
            return []
        called = _called(left, names)
        same = {
            name.lower()
            for (name, kind), (_, _, other) in zip(called, right, strict=True)
            if kind is not None and kind == other
        }
        return [
            condition
            for condition in conjuncts
            if all(ref.names[0].lower() in same for ref in _refs(condition))
        ]

    def _inside(
        self, expressions: Sequence[n.Expression], queries: Sequence[n.Query], ctes: Ctes
    ) -> None:
        """Queries inside of expressions: nothing outside of them tells about their rows."""
        for query in queries:
            self.query(query, ctes, [[]])
        for expression in expressions:
            for part in expression.walk():
                for query in part.queries:
                    self.query(query, ctes, [[]])

    def _closed(self, ref: n.TableRef, ctes: Ctes) -> None:
        """A source whose rows no condition is known of, with everything inside it."""
        for inner in n.walk_tables(ref):
            if isinstance(inner, n.BaseTable):
                self.seen += 1
                use = cte_of(inner, ctes)
                if use is not None:
                    use.uses.append([])
                else:
                    self.pushed.tables[inner] = [[]]
            self._inside(inner.expressions, inner.queries, ctes)

    # SELECT

    def _select(
        self, node: n.Select, ctes: Ctes, outer: list[Conjuncts], names: Sequence[str]
    ) -> None:
        clause = self._clause(node.source, ctes)
        joins = clause.joins
        inside = self._passed(node, ctes, outer, names)
        last = len(joins) + 1
        staged = [(last, condition) for condition in n.conjuncts(node.where)]
        staged += [
            (last, condition)
            for condition in n.conjuncts(node.having)
            if _over_keys(node, condition)
        ]
        for at, join in enumerate(joins, start=1):
            staged += [(at, condition) for condition in n.conjuncts(join.condition)]
        if any(join.method == "POSITIONAL" for join in joins) or node.is_sampled:
            staged, inside = [], [[]]
        equal = self._equalities(clause, staged)
        for source in clause.sources:
            own_conditions = _of_source(staged, source, clause)
            own_conditions += _carried(source, clause, staged, equal)
            alternatives = [
                own_conditions + _of_source([(last, one) for one in passed], source, clause)
                for passed in inside
            ]
            self._give(source, ctes, alternatives)
        more = (node.where, node.having, node.qualify, *(join.condition for join in joins))
        expressions = [*node.outputs, *node.keys, *node.expressions]
        expressions += [expression for expression in more if expression is not None]
        self._inside(expressions, node.queries, ctes)

    def _give(self, source: FromItem, ctes: Ctes, alternatives: list[Conjuncts]) -> None:
        if source.is_closed:
            alternatives = [[]]
        if source.cte is not None:
            self.seen += 1
            source.cte.uses += alternatives
        elif source.query is not None:
            names = [name for name, _ in source.columns or ()]
            self.query(source.query, ctes, alternatives, names)
        elif isinstance(source.node, n.BaseTable):
            self.seen += 1
            self.pushed.tables[source.node] = [
                _own_names(alternative, source) for alternative in alternatives
            ]
            self._inside(source.node.expressions, source.node.queries, ctes)
        else:
            self._closed(source.node, ctes)

    def _clause(self, ref: n.TableRef | None, ctes: Ctes) -> FromClause:
        """The sources that joins bring in one after the other. A join on the right of another one,
        in brackets, is one closed source."""
        if ref is None:
            return FromClause([], [])
        joins: list[n.JoinRef] = []
        while isinstance(ref, n.JoinRef) and not ref.alias:
            joins.insert(0, ref)
            ref = ref.inside[0]
        sources = [self._source(ref, 0, ctes)]
        for at, join in enumerate(joins, start=1):
            source = self._source(join.inside[1], at, ctes)
            source.is_closed = source.is_closed or join.method == "ASOF"
            sources.append(source)
        return FromClause(sources, joins)

    def _source(self, ref: n.TableRef, entered: int, ctes: Ctes) -> FromItem:
        item = FromItem(node=ref, alias=ref.alias.lower(), entered=entered)
        match ref:
            case n.BaseTable():
                item.alias = item.alias or ref.path[-1].lower()
                item.path = () if ref.alias else tuple(part.lower() for part in ref.path)
                item.cte = cte_of(ref, ctes)
                if item.cte is not None:
                    item.columns = item.cte.columns
                elif (types := self._columns(ref)) is not None:
                    item.columns = list(types.items())
            case n.SubqueryRef():
                item.query = ref.query
                outputs = self.outputs(ref.query, ctes)
                item.columns = None if outputs is None else _called(outputs, ())
        item.own = [name for name, _ in item.columns or ()]
        if item.columns is not None and len(ref.columns) <= len(item.columns):
            item.columns = [
                (name, kind)
                for name, (_, kind) in zip(
                    [*ref.columns, *item.own[len(ref.columns) :]], item.columns, strict=True
                )
            ]
        elif ref.columns:
            item.columns = None
        if item.cte is not None and ref.columns:
            item.is_closed = True
        item.is_closed = item.is_closed or ref.is_sampled
        return item

    # Columns that are equal

    def _equalities(self, clause: FromClause, own: Staged) -> list[set[tuple[int, str]]]:
        """Columns of one type that every row of the result has equal; for inner joins alone."""
        sources = clause.sources
        if any(not is_inner(join) for join in clause.joins):
            return []
        numbers = {id(source): at for at, source in enumerate(sources)}
        classes: list[set[tuple[int, str]]] = []
        for _, condition in own:
            if not isinstance(condition, n.Comparison) or condition.operator != "=":
                continue
            sides = [resolve(side, sources) for side in (condition.left, condition.right)]
            ends = [side for side in sides if side is not None and len(side[1].names) == 1]
            kinds = [source.type_of(ref.names[0]) for source, ref in ends]
            if len(ends) != 2 or kinds[0] is None or kinds[0] != kinds[1]:
                continue
            pair = {(numbers[id(source)], ref.names[0].lower()) for source, ref in ends}
            if len(pair) == 2:
                self._note(pair, sources)
                touching = [group for group in classes if group & pair]
                classes = [group for group in classes if not group & pair]
                classes.append(pair.union(*touching))
        return classes

    def _note(self, pair: set[tuple[int, str]], sources: list[FromItem]) -> None:
        ends = [
            (node, _own_name(column, sources[at]))
            for at, column in pair
            if sources[at].cte is None
            and not sources[at].is_closed
            and isinstance(node := sources[at].node, n.BaseTable)
        ]
        if len(ends) == 2:
            self.pushed.joined.append((ends[0], ends[1]))

    # Through a query's columns

    def _passed(
        self, node: n.Select, ctes: Ctes, outer: list[Conjuncts], names: Sequence[str]
    ) -> list[Conjuncts]:
        """Conditions over the output as conditions over the sources, where they may pass."""
        nothing: list[Conjuncts] = [[] for _ in outer] or [[]]
        if (
            not any(outer)
            or node.is_limited
            or node.qualify is not None
            or any(isinstance(part, n.Window) for out in node.outputs for part in out.walk())
        ):
            return nothing
        outputs = self.outputs(node, ctes)
        if outputs is None:
            return nothing
        by_name: dict[str, n.Expression | None] = {}
        for (name, _), (_, expression, _) in zip(_called(outputs, names), outputs, strict=True):
            by_name[name.lower()] = None if name.lower() in by_name else expression
        return [
            [
                inner
                for condition in alternative
                if (inner := _through(condition, by_name)) is not None
                and (not node.is_grouped or _over_keys(node, inner, is_outer=True))
            ]
            for alternative in outer
        ]

    def outputs(self, node: n.Query, ctes: Ctes) -> list[Output] | None:
        """Names, expressions and types of a query's columns, stars expanded; None when unknown."""
        visible, _ = self._with(node, ctes)
        if isinstance(node, n.SetOperation):
            left, right = (self.outputs(side, visible) for side in node.queries[:2])
            if left is None or right is None or len(left) != len(right):
                return None
            if node.operator == "UNION_BY_NAME":
                return None
            return [
                (name, None, kind if kind == other else None)
                for (name, _, kind), (_, _, other) in zip(left, right, strict=True)
            ]
        if not isinstance(node, n.Select):
            return None
        clause = self._clause(node.source, visible)
        outputs: list[Output] = []
        for output in node.outputs:
            if isinstance(output, n.Star):
                expanded = _expanded(output, clause)
                if expanded is None:
                    return None
                outputs += expanded
            elif _makes_columns(output):
                return None
            else:
                outputs.append(_output(output, clause.sources))
        return outputs


def _of_source(conditions: Staged, source: FromItem, clause: FromClause) -> Conjuncts:
    """The conditions over the source's own columns, where they speak of this source alone and
    hold for each of its rows that counts."""
    over_source = (_over(condition, stage, source, clause) for stage, condition in conditions)
    return [condition for condition in over_source if condition is not None]


def _over(
    condition: n.Expression, stage: int, source: FromItem, clause: FromClause
) -> n.Expression | None:
    if source.entered > stage or not may_prune(condition, stage, source, clause.joins):
        return None
    if any(part.queries or isinstance(part, n.Window) for part in condition.walk()):
        return None
    if isinstance(condition, n.Conjunction) and condition.operator == "OR":
        return _of_arms(condition, stage, source, clause)
    meant = {id(ref): resolve(ref, clause.sources) for ref in _refs(condition)}
    if not meant or any(end is None or end[0] is not source for end in meant.values()):
        return None

    def own(ref: n.ColumnRef) -> n.ColumnRef | None:
        resolved = meant[id(ref)]
        return None if resolved is None else resolved[1]

    return substituted(condition, own)


def _of_arms(
    condition: n.Conjunction, stage: int, source: FromItem, clause: FromClause
) -> n.Expression | None:
    """What every arm of an OR says of the source: one of that must hold."""
    arms: list[n.Expression] = []
    for arm in condition.children:
        parts = _of_source([(stage, part) for part in n.conjuncts(arm)], source, clause)
        if not parts:
            return None
        arms.append(_joined("AND", parts, condition))
    return _joined("OR", arms, condition)


def _carried(
    source: FromItem, clause: FromClause, own: Staged, equal: list[set[tuple[int, str]]]
) -> Conjuncts:
    """Conditions over a column of another source that equals one of this source."""
    carried: Conjuncts = []
    number = clause.sources.index(source)
    for group in equal:
        keys = [column for at, column in group if at == number]
        others = [(at, column) for at, column in group if keys and at != number]
        for at, column in others:
            for condition in _of_source(own, clause.sources[at], clause):
                if all(_key(ref) == (column,) for ref in _refs(condition)):
                    carried.append(_over_column(condition, keys[0]))
    return carried


def _output(output: n.Expression, sources: list[FromItem]) -> Output:
    if not isinstance(output, n.ColumnRef):
        return output.alias, output, None
    resolved = resolve(output, sources)
    kind = None
    if resolved is not None and len(resolved[1].names) == 1:
        kind = resolved[0].type_of(resolved[1].names[0])
    return output.alias or output.names[-1], output, kind


def _expanded(star: n.Star, clause: FromClause) -> list[Output] | None:
    is_plain = star.is_plain and not any(
        join.using or join.method == "NATURAL" or join.type in ("SEMI", "ANTI")
        for join in clause.joins
    )
    relation = star.relation.lower()
    chosen = [source for source in clause.sources if not relation or source.alias == relation]
    if not is_plain or not chosen or (relation and len(chosen) > 1):
        return None
    outputs: list[Output] = []
    for source in chosen:
        if source.columns is None:
            return None
        for name, kind in source.columns:
            ref = n.ColumnRef(kind=star.kind, raw=star.raw, names=(source.alias, name))
            outputs.append((name, ref, kind))
    return outputs


def _makes_columns(output: n.Expression) -> bool:
    """Whether it may stand for several columns."""
    return any(
        isinstance(part, n.Star) or (isinstance(part, n.Function) and part.name == "unnest")
        for part in output.walk()
        if not (isinstance(part, n.Function) and part.name == "count")
    )


def _called(
    outputs: Sequence[Output], names: Sequence[str]
) -> list[tuple[str, IcebergType | None]]:
    """Columns under the names that a list gives to the first of them."""
    own_names = [name for name, _, _ in outputs]
    called = [*names[: len(own_names)], *own_names[len(names) :]]
    return [(name, kind) for name, (_, _, kind) in zip(called, outputs, strict=True)]


def _over_keys(node: n.Select, condition: n.Expression, *, is_outer: bool = False) -> bool:
    """Whether a condition speaks of grouping keys alone. In HAVING, an alias of the outputs may be
    meant by a name; from outside, outputs have been put in place of their names."""
    if not node.has_plain_keys:
        return False
    for part in condition.walk():
        if part.queries or isinstance(part, n.Window):
            return False
        if isinstance(part, n.Function) and not (part.is_plain and part.name in _ROWWISE):
            return False
    keys = {_key(key) for key in node.keys if isinstance(key, n.ColumnRef)}
    # GROUP BY a, and HAVING a, may mean the output called a.
    aliases = {(output.alias.lower(),) for output in node.outputs if output.alias}
    keys -= aliases
    positions = [
        int(key.value)
        for key in node.keys
        if isinstance(key, n.Constant) and isinstance(key.value, int)
    ]
    for number in positions:
        chosen = node.outputs[number - 1] if 0 < number <= len(node.outputs) else None
        if isinstance(chosen, n.ColumnRef):
            keys.add(_key(chosen))
    refused = frozenset() if is_outer else aliases
    return all(_key(ref) in keys and _key(ref) not in refused for ref in _refs(condition))


def _key(ref: n.ColumnRef) -> tuple[str, ...]:
    return tuple(name.lower() for name in ref.names)


def _refs(condition: n.Expression) -> list[n.ColumnRef]:
    return [part for part in condition.walk() if isinstance(part, n.ColumnRef)]


def _over_column(condition: n.Expression, column: str) -> n.Expression:
    """A condition over one column as one over another."""
    return substituted(condition, lambda ref: renamed(ref, (column,))) or condition


def _own_name(column: str, source: FromItem) -> str:
    number = source.position(column)
    return column if number is None else source.own[number]


def _own_names(conjuncts: Conjuncts, source: FromItem) -> Conjuncts:
    """Conditions with the names that the table itself has for its columns."""

    def own(ref: n.ColumnRef) -> n.ColumnRef:
        return renamed(ref, (_own_name(ref.names[0], source), *ref.names[1:]))

    moved = [substituted(condition, own) for condition in conjuncts]
    return [condition for condition in moved if condition is not None]


def substituted(
    node: n.Expression, put: Callable[[n.ColumnRef], n.Expression | None]
) -> n.Expression | None:
    """An expression with something else in place of its columns; None if one has no place."""
    results: dict[int, n.Expression | None] = {}
    for part in reversed(list(node.walk())):  # those inside first: a long sum is as deep as long
        inside = [results[id(child)] for child in part.children]
        if isinstance(part, n.ColumnRef):
            results[id(part)] = put(part)
        elif all(new is old for new, old in zip(inside, part.children, strict=True)):
            results[id(part)] = part  # a constant, which DuckDB's own node still describes
        elif any(child is None for child in inside):
            results[id(part)] = None
        else:
            children = tuple(child for child in inside if child is not None)
            results[id(part)] = replace(part, children=children)
    return results[id(node)]


def _through(
    condition: n.Expression, by_name: dict[str, n.Expression | None]
) -> n.Expression | None:
    """A condition over output columns, with the plain columns that those are."""

    def inner(ref: n.ColumnRef) -> n.Expression | None:
        meant = by_name.get(ref.names[0].lower())
        if not isinstance(meant, n.ColumnRef):
            return None
        return renamed(meant, (*meant.names, *ref.names[1:]))

    return substituted(condition, inner)


def _joined(operator: str, parts: Sequence[n.Expression], like: n.Expression) -> n.Expression:
    if len(parts) == 1:
        return parts[0]
    return n.Conjunction(kind="CONJUNCTION", raw=like.raw, operator=operator, children=tuple(parts))
