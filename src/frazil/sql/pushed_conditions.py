"""Which conditions apply to each table of a query, so that it can be pruned by them.

A condition of a table is one that every row of it which takes part in the result fulfils. Found
are the conjuncts of WHERE, ON and HAVING that name one table alone, through subqueries, CTEs and
set operations, and those that equal join keys carry over. Where SQL would not allow it (the
null-extended side of an outer join, above LIMIT, beside a window), nothing is carried; what is not
understood is left out. Conditions are never rewritten: a wrong simplification would lose rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from frazil.sql.from_clause import (
    Cte,
    FromItem,
    cte_of,
    is_inner,
    may_prune,
    resolve,
    without,
    word,
)

Columns = Callable[[exp.Table], Sequence[str] | None]
"""The columns of a table of the catalog; None for everything else."""
Conjuncts = list[exp.Expr]

_NESTED = (exp.Query, exp.Window, exp.AggFunc)


_Meant = list[tuple[FromItem, tuple[str, ...]] | None] | None


@dataclass(slots=True)
class Found:
    """For every table: alternatives, each a list of conditions that hold together.

    `joined` are pairs of (table, column) that an inner join makes equal.
    """

    tables: dict[int, list[Conjuncts]] = field(default_factory=dict)
    joined: list[tuple[tuple[int, str], tuple[int, str]]] = field(default_factory=list)


def conditions(query: exp.Expr, columns: Columns, *, outer: Sequence[exp.Expr] = ()) -> Found:
    """The conditions over each table of a query, by the id of its node. `outer` are conditions
    over the query's own columns."""
    walk = _Walk(columns)
    walk.query(query, {}, [list(outer)])
    return walk.found


class _Walk:
    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.found = Found()
        # By identity, so what the numbers stand for is held as well.
        self._columns_of: dict[tuple[int, int], tuple[exp.Expr, list[FromItem], _Meant]] = {}

    # Queries

    def query(self, node: exp.Expr, ctes: dict[str, Cte], outer: list[Conjuncts]) -> None:
        """Visit a query that is used under alternatives of conditions over its columns."""
        known, own = self._with(node, ctes)
        match node:
            case exp.Select():
                self._select(node, known, outer)
            case exp.SetOperation():
                self._set_operation(node, known, outer)
            case exp.Subquery():
                closed = node.args.get("limit") or node.args.get("offset")
                self.query(node.this, known, [[]] if closed else outer)
            case _:
                self._others(node, known, skip=node.args.get("with_"))
        # Uses come before definitions: a later CTE may use an earlier one.
        for cte in reversed(own):
            uses = cte.uses if cte.uses and not cte.is_recursive else [[]]
            self.query(cte.query, without(known, own, cte), uses)

    def _with(self, node: exp.Expr, ctes: dict[str, Cte]) -> tuple[dict[str, Cte], list[Cte]]:
        clause = node.args.get("with_")
        if clause is None:
            return ctes, []
        known = dict(ctes)
        own: list[Cte] = []
        for each in clause.expressions:
            recursive = bool(clause.args.get("recursive"))
            given = [column.name for column in each.args["alias"].args.get("columns") or ()]
            names = given or None
            if names is None and not recursive:
                outputs = self.outputs(each.this, known)
                names = None if outputs is None else [name for name, _ in outputs]
            made = Cte(query=each.this, names=names, is_recursive=recursive)
            known[each.alias.lower()] = made
            own.append(made)
        return known, own

    def _set_operation(
        self, node: exp.SetOperation, ctes: dict[str, Cte], outer: list[Conjuncts]
    ) -> None:
        left, right = node.this, node.expression
        closed = node.args.get("limit") or node.args.get("offset") or node.args.get("by_name")
        names = self.outputs(left, ctes)
        others = self.outputs(right, ctes)
        self.query(left, ctes, [[]] if closed else outer)
        if closed or names is None or others is None or len(names) != len(others):
            self.query(right, ctes, [[]])
            return
        renamed = {name.lower(): other for (name, _), (other, _) in zip(names, others, strict=True)}
        self.query(right, ctes, [_renamed(each, renamed) for each in outer])

    def _others(
        self, node: exp.Expr, ctes: dict[str, Cte], *, skip: exp.Expr | None = None
    ) -> None:
        """Queries inside an expression: nothing outside of them tells about their rows."""
        for child in node.iter_expressions():
            if child is skip:
                continue
            if isinstance(child, exp.Query):
                self.query(child, ctes, [[]])
            elif isinstance(child, exp.Table):
                self._table(child, ctes)
            else:
                self._others(child, ctes)

    def _table(self, node: exp.Table, ctes: dict[str, Cte]) -> None:
        cte = cte_of(node, ctes)
        if cte is not None:
            cte.uses.append([])
        else:
            self.found.tables.setdefault(id(node), [[]])
        self._others(node, ctes)

    # SELECT

    def _select(self, node: exp.Select, ctes: dict[str, Cte], outer: list[Conjuncts]) -> None:
        sources, joins = self._sources(node, ctes)
        inside = self._pushed(node, sources, ctes, outer)
        own = [(len(joins) + 1, each) for each in _split(node.args.get("where"))]
        own += [
            (len(joins) + 1, each)
            for each in _split(node.args.get("having"))
            if self._over_keys(node, each)
        ]
        for at, join in enumerate(joins, start=1):
            own += [(at, each) for each in _split(join.args.get("on"))]
        if any(word(join, "method") == "POSITIONAL" for join in joins) or node.args.get("sample"):
            own, inside = [], [[]]
        equal = self._equalities(sources, joins, own)
        for source in sources:
            given = [
                found
                for stage, each in own
                if (found := self._of_source(each, stage, source, sources, joins)) is not None
            ]
            given += self._carried(source, sources, joins, own, equal)
            alternatives = []
            for alternative in inside:
                carried = [
                    found
                    for each in alternative
                    if (found := self._of_source(each, len(joins) + 1, source, sources, joins))
                    is not None
                ]
                alternatives.append([*given, *carried])
            self._give(source, ctes, alternatives)
        for key in ("expressions", "where", "having", "qualify", "group", "order", "distinct"):
            for child in _listed(node.args.get(key)):
                if isinstance(child, exp.Query):
                    self.query(child, ctes, [[]])
                else:
                    self._others(child, ctes)
        for join in joins:
            for child in _listed(join.args.get("on")):
                self._others(child, ctes)

    def _give(self, source: FromItem, ctes: dict[str, Cte], alternatives: list[Conjuncts]) -> None:
        if source.is_closed:
            alternatives = [[]]
        if source.cte is not None:
            source.cte.uses += alternatives
        elif source.query is not None:
            self.query(source.query, ctes, alternatives)
        elif isinstance(source.node, exp.Table):
            self.found.tables[id(source.node)] = alternatives
            self._others(source.node, ctes)
        else:
            self._others(source.node, ctes)

    def _sources(
        self, node: exp.Select, ctes: dict[str, Cte]
    ) -> tuple[list[FromItem], list[exp.Join]]:
        start = node.args.get("from_")
        if start is None:
            return [], []
        first = start.this
        inner: list[exp.Join] = []
        while isinstance(first, exp.Subquery) and isinstance(first.this, exp.Table):
            if first.alias:
                break
            inner = [*(first.args.get("joins") or ()), *inner]
            first = first.this
        inner = [*(first.args.get("joins") or ()), *inner]
        joins = [*inner, *(node.args.get("joins") or ())]
        found = [self._source(first, 0, ctes)]
        found += [self._source(join.this, at, ctes) for at, join in enumerate(joins, start=1)]
        for at, join in enumerate(joins, start=1):
            if word(join, "method") == "ASOF":
                found[at].is_closed = True
        return found, joins

    def _source(self, node: exp.Expr, entered: int, ctes: dict[str, Cte]) -> FromItem:
        alias = (node.alias_or_name or "").lower()
        made = FromItem(node=node, alias=alias, columns=None, entered=entered)
        given = node.args.get("alias")
        renamed = [each.name for each in (given.args.get("columns") or ())] if given else []
        if isinstance(node, exp.Table):
            made.cte = cte_of(node, ctes)
            if made.cte is not None:
                made.columns = made.cte.names
            else:
                names = self._columns(node)
                made.columns = None if names is None else list(names)
            if (
                node.args.get("pivots")
                or node.args.get("sample")
                or (entered and node.args.get("joins"))
            ):
                made.is_closed, made.columns = True, None
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            made.query = node.this
            outputs = self.outputs(node.this, ctes)
            made.columns = None if outputs is None else [name for name, _ in outputs]
            if node.args.get("pivots") or node.args.get("sample"):
                made.is_closed, made.columns = True, None
        if renamed and made.columns is not None:
            # t(a, b) gives columns other names; conditions by those names would be mistaken.
            made.columns, made.is_closed = [*renamed, *made.columns[len(renamed) :]], True
        return made

    # Conditions of one source

    def _of_source(
        self,
        condition: exp.Expr,
        stage: int,
        source: FromItem,
        sources: list[FromItem],
        joins: list[exp.Join],
    ) -> exp.Expr | None:
        """The condition over the source's own columns if it speaks of this source alone and holds
        for each of its rows that counts."""
        if source.entered > stage:
            return None
        meant = self._meant(condition, sources)
        if meant is None or not any(each is not None and each[0] is source for each in meant):
            return None
        if not may_prune(condition, stage, source, joins):
            return None
        if isinstance(condition, exp.Or):
            return self._of_arms(condition, stage, source, sources, joins)
        paths = [each[1] for each in meant if each is not None and each[0] is source]
        if len(paths) < len(meant):
            return None
        wrapper = exp.Paren(this=condition.copy())
        copies = list(wrapper.find_all(exp.Column))
        for column, path in zip(copies, paths, strict=True):
            column.replace(_path(path))
        made: exp.Expr = wrapper.this
        return made

    def _meant(self, condition: exp.Expr, sources: list[FromItem]) -> _Meant:
        """The source and path of every column, found once; None where a query, a window or an
        aggregate stands inside."""
        key = (id(condition), id(sources))
        known = self._columns_of.get(key)
        if known is None:
            found = [resolve(each, sources) for each in condition.find_all(exp.Column)]
            meant = None if condition.find(*_NESTED) else found
            known = self._columns_of[key] = (condition, sources, meant)
        return known[2]

    def _of_arms(
        self,
        condition: exp.Or,
        stage: int,
        source: FromItem,
        sources: list[FromItem],
        joins: list[exp.Join],
    ) -> exp.Expr | None:
        """What every arm of an OR says of the source: one of that must hold."""
        arms: list[exp.Expr] = []
        for arm in condition.flatten():
            parts = [
                found
                for each in _split(arm)
                if (found := self._of_source(each, stage, source, sources, joins)) is not None
            ]
            if not parts:
                return None
            arms.append(exp.and_(*parts, copy=False))
        return exp.or_(*arms, copy=False)

    def _equalities(
        self, sources: list[FromItem], joins: list[exp.Join], own: list[tuple[int, exp.Expr]]
    ) -> list[set[tuple[int, str]]]:
        """Columns that every row of the result has equal; for inner joins alone."""
        if any(not is_inner(join) for join in joins):
            return []
        numbers = {id(source): at for at, source in enumerate(sources)}
        classes: list[set[tuple[int, str]]] = []
        for _, condition in own:
            if not isinstance(condition, exp.EQ):
                continue
            sides = [resolve(side, sources) for side in (condition.this, condition.expression)]
            if any(side is None or len(side[1]) != 1 for side in sides):
                continue
            pair = {(numbers[id(side[0])], side[1][0].lower()) for side in sides if side}
            if len(pair) == 2:
                self._note(pair, sources)
                touching = [each for each in classes if each & pair]
                classes = [each for each in classes if not each & pair]
                classes.append(pair.union(*touching))
        return classes

    def _note(self, pair: set[tuple[int, str]], sources: list[FromItem]) -> None:
        ends = [
            (id(sources[at].node), column)
            for at, column in pair
            if sources[at].cte is None and isinstance(sources[at].node, exp.Table)
        ]
        if len(ends) == 2 and not any(sources[at].is_closed for at, _ in pair):
            self.found.joined.append((ends[0], ends[1]))

    def _carried(
        self,
        source: FromItem,
        sources: list[FromItem],
        joins: list[exp.Join],
        own: list[tuple[int, exp.Expr]],
        equal: list[set[tuple[int, str]]],
    ) -> Conjuncts:
        """Conditions over a column of another source that equals one of this source."""
        found: Conjuncts = []
        mine = sources.index(source)
        for group in equal:
            keys = [column for at, column in group if at == mine]
            if not keys:
                continue
            for at, column in group:
                if at == mine:
                    continue
                for stage, condition in own:
                    other = self._of_source(condition, stage, sources[at], sources, joins)
                    if other is None or not _only(other, column):
                        continue
                    found.append(_renamed([other], {column: keys[0]})[0])
        return found

    # Through a query's columns

    def _pushed(
        self,
        node: exp.Select,
        sources: list[FromItem],
        ctes: dict[str, Cte],
        outer: list[Conjuncts],
    ) -> list[Conjuncts]:
        """Conditions over the output as conditions over the sources, where they may pass."""
        distinct = node.args.get("distinct")
        if (
            not any(outer)
            or node.args.get("limit")
            or node.args.get("offset")
            or node.args.get("qualify")
            or (distinct is not None and distinct.args.get("on"))
            or any(each.find(exp.Window) for each in node.expressions)
        ):
            return [[] for _ in outer] or [[]]
        outputs = self.outputs(node, ctes)
        if outputs is None:
            return [[] for _ in outer]
        by_name = {name.lower(): made for name, made in outputs}
        groups = bool(node.args.get("group")) or any(
            made is not None and made.find(exp.AggFunc) for _, made in outputs
        )
        return [
            [
                made
                for each in alternative
                if (made := _substituted(each, by_name)) is not None
                and (not groups or self._over_keys(node, made))
            ]
            for alternative in outer
        ]

    def _over_keys(self, node: exp.Select, condition: exp.Expr) -> bool:
        """Whether a condition speaks of grouping keys alone."""
        group = node.args.get("group")
        if group is None or condition.find(exp.AggFunc) or condition.find(exp.Query):
            return False
        if any(group.args.get(key) for key in ("grouping_sets", "cube", "rollup", "all", "totals")):
            return False
        keys = [
            node.expressions[int(each.this) - 1].unalias()
            if isinstance(each, exp.Literal)
            and each.is_int
            and int(each.this) <= len(node.expressions)
            else each
            for each in group.expressions
        ]
        plain = {_key(each) for each in keys if isinstance(each, exp.Column)}
        return all(_key(column) in plain for column in condition.find_all(exp.Column))

    def outputs(
        self, node: exp.Expr, ctes: dict[str, Cte]
    ) -> list[tuple[str, exp.Expr | None]] | None:
        """Names and expressions of a query's columns, stars expanded; None when unknown."""
        while isinstance(node, exp.Subquery):
            node = node.this
        known, _ = self._with(node, ctes)
        if isinstance(node, exp.SetOperation):
            left = self.outputs(node.this, known)
            return None if left is None else [(name, None) for name, _ in left]
        if not isinstance(node, exp.Select):
            return None
        made: list[tuple[str, exp.Expr | None]] = []
        sources: list[FromItem] | None = None
        for each in node.expressions:
            star = isinstance(each, exp.Star) or (
                isinstance(each, exp.Column) and isinstance(each.this, exp.Star)
            )
            if not star:
                if each.find(exp.Columns) or not each.alias_or_name:
                    return None
                made.append((each.alias_or_name, each.unalias()))
                continue
            inner = each if isinstance(each, exp.Star) else each.this
            if any(inner.args.get(key) for key in ("except_", "replace", "rename", "except")):
                return None
            if sources is None:
                sources, joins = self._sources(node, known)
                if any(j.args.get("using") or word(j, "method") == "NATURAL" for j in joins):
                    return None
            table = each.table.lower() if isinstance(each, exp.Column) else ""
            chosen = [source for source in sources if not table or source.alias == table]
            if not chosen or any(source.columns is None for source in chosen):
                return None
            for source in chosen:
                for name in source.columns or ():
                    made.append((name, exp.column(name, table=source.alias, quoted=True)))
        return made


# Names


def _key(column: exp.Column) -> tuple[str, str]:
    return column.table.lower(), column.name.lower()


def _path(parts: Sequence[str]) -> exp.Expr:
    made: exp.Expr = exp.column(parts[0], quoted=True)
    for part in parts[1:]:
        made = exp.Dot(this=made, expression=exp.to_identifier(part, quoted=True))
    return made


def _only(condition: exp.Expr, column: str) -> bool:
    """Whether a condition looks at one column, as a whole."""
    return all(
        each.name.lower() == column and not isinstance(each.parent, exp.Dot)
        for each in condition.find_all(exp.Column)
    )


def _renamed(conjuncts: Sequence[exp.Expr], names: dict[str, str]) -> Conjuncts:
    made: Conjuncts = []
    for each in conjuncts:
        wrapper = exp.Paren(this=each.copy())
        for column in list(wrapper.find_all(exp.Column)):
            if column.name.lower() in names:
                column.replace(exp.column(names[column.name.lower()], quoted=True))
        made.append(wrapper.this)
    return made


def _substituted(condition: exp.Expr, by_name: dict[str, exp.Expr | None]) -> exp.Expr | None:
    """A condition over output columns with what those are put in their place."""
    wrapper = exp.Paren(this=condition.copy())
    for column in list(wrapper.find_all(exp.Column)):
        meant = by_name.get(column.name.lower())
        if not isinstance(meant, exp.Column):
            return None
        column.replace(meant.copy())
    made: exp.Expr = wrapper.this
    return made


def _split(clause: exp.Expr | None) -> Iterator[exp.Expr]:
    """The conjuncts of a clause."""
    if clause is None:
        return
    node = clause.this if isinstance(clause, exp.Where | exp.Having) else clause
    node = node.unnest()
    if isinstance(node, exp.And):
        yield from _split(node.this)
        yield from _split(node.expression)
    else:
        yield node


def _listed(value: object) -> list[exp.Expr]:
    if isinstance(value, exp.Expr):
        return [value]
    return [each for each in value if isinstance(each, exp.Expr)] if isinstance(value, list) else []
