"""A query's tables as views on a DuckDB connection, each pruned by the conditions over it.

The text goes to the engine as it was written; only names of tables are replaced, by the names of
the views, and clauses of time travel are taken out. sqlglot reads a copy to find the tables and
their conditions. What it cannot read is run without pruning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any, Final

import sqlglot
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression
from sqlglot import exp

from frazil.catalog.names import undotted
from frazil.data.metadata_columns import METADATA_COLUMNS
from frazil.errors import FrazilError, InvalidInput, NotFound, Unsupported
from frazil.expr.quotes import quoted
from frazil.rows import duckdb_filter
from frazil.rows.planned import Planned
from frazil.rows.scan import Scan
from frazil.sql.duckdb_calls import failure, value_of
from frazil.sql.filters import Constants, filter_of, key_filter
from frazil.sql.name_resolution import (
    AsOf,
    GivenMeant,
    Meant,
    TableMeant,
    ViewMeant,
    given_rows,
    metadata_rows,
)
from frazil.sql.pushed_conditions import Found, conditions
from frazil.sql.ready_scans import Key, ReadyScan, state_of
from frazil.sql.rewriting import Edit, EngineText, rewrite
from frazil.sql.scopes import Scope, aliases_around, is_cte
from frazil.sql.sql_engine import Pruned, SqlEngine
from frazil.sql.text import Cursor, Kind, Name, Part, Source, Token, chain, tokens
from frazil.sql.times import TimeTravel, time_travels
from frazil.sql.view_sql import view_query
from frazil.table.table import Table

CHANGES_FUNCTION: Final = "table_changes"
_SPECIAL: Final = frozenset({*METADATA_COLUMNS, "_partition"})
_BEFORE_TABLE: Final = ("from", "join", "table", "summarize", "pivot", "unpivot", "using")
_MAX_DEPTH: Final = 20
_SMALL_ROWS: Final = 200_000
_SMALL_BYTES: Final = 16 * 1024 * 1024
_MANY_FILES = 64


@dataclass(slots=True)
class _Reference:
    name: Name
    node: exp.Table | None
    meant: Meant
    view: str
    as_of: AsOf | None = None
    has_alias: bool = False
    scan: Scan | None = None
    ready: ReadyScan | None = None
    """Its rows, if they are a table's and not read yet."""
    filter: str = ""
    """The scan's filter as text."""
    key: Key | None = None
    """By what other uses of the same rows find them."""
    query: str = ""
    """The SELECT of its rows where it stands for the name; else there is a view."""


class Binder:
    """Binds the queries and expressions of one statement."""

    def __init__(
        self, engine: SqlEngine, source: Source, found: Sequence[Token], parameters: Sequence[Edit]
    ) -> None:
        self.engine = engine
        self.source = source
        self._tokens = list(found)
        self._index = {token.start: at for at, token in enumerate(self._tokens)}
        self._travels = time_travels(source, self._tokens)
        self._edits: list[Edit] = [
            *parameters,
            *((each.part.start, each.part.end, "") for each in self._travels.values()),
            *(
                (token.start, token.end, quoted(token.value))
                for token in self._tokens
                if token.kind is Kind.QUOTED and source.text[token.start] == "`"
            ),
        ]
        inside = [(each.part.start, each.part.end) for each in self._travels.values()]
        self._edits = [
            edit
            for edit in self._edits
            if not any(s <= edit[0] and edit[1] <= e and edit[:2] != (s, e) for s, e in inside)
        ]
        self._parameters = list(parameters)
        self.tables: list[tuple[tuple[str, ...], Meant]] | None = None
        """The tables of the query that was bound, if to bind it again would only do the same for as
        long as these tables stay as they are."""
        self.expressions: list[tuple[Part, EngineText]] = []
        """What was bound for row-level changes, each behind SELECT."""

    def plain(self, part: Part) -> str:
        """A part with parameters put in, for constants."""
        return rewrite(self.source, [part], self._parameters).text.strip()

    def query(self, *parts: Part, outer: Sequence[exp.Expr] = (), prefix: str = "") -> EngineText:
        """A query as the engine takes it; its tables are bound."""
        return self._bind(parts, prefix, outer)

    def put(self, edits: Sequence[Edit]) -> None:
        """Replace more of the text."""
        self._edits += edits

    def expression(self, part: Part, scope: Scope) -> str:
        """An expression over the rows of a table, as row-level changes take it: with their names
        for the rows; tables of its subqueries are bound."""
        made = self._bind([part], "SELECT ", (), scope)
        self.expressions.append((part, made))
        return expression_text(made)

    def exists(self, part: Part, scope: Scope) -> str:
        """Whether there are rows of `table, … WHERE condition`, as an expression."""
        made = self._bind([part], "SELECT EXISTS (SELECT 1 FROM ", (), scope, suffix=")")
        self.expressions.append((part, made))
        return expression_text(made)

    def rows_of(self, part: Part) -> EngineText:
        """All columns of a table, or of a query in brackets."""
        return self._bind([part], "SELECT * FROM ", ())

    def _bind(
        self,
        parts: Sequence[Part],
        prefix: str,
        outer: Sequence[exp.Expr],
        scope: Scope | None = None,
        *,
        suffix: str = "",
    ) -> EngineText:
        changes = [edit for part in parts for edit in self._change_functions(part)]
        edits = [
            edit
            for edit in self._edits
            if not any(start <= edit[0] and edit[1] <= end for start, end, _ in changes)
        ] + changes
        read = rewrite(self.source, parts, edits, prefix=prefix, suffix=suffix)
        tree = _parsed(read.text)
        references = self._by_tokens(parts) if tree is None else self._by_tree(tree, read)
        found = Found() if tree is None else conditions(tree, _columns(references), outer=outer)
        is_lasting = self._attach_all(references, found)
        if tree is not None and is_lasting and not changes and not self._travels:
            self.tables = [(tuple(each.name.parts), each.meant) for each in references]
        edits += [self._edit(each) for each in references]
        edits += self._qualifiers(parts, references)
        if scope is not None:
            edits += self._scoped(tree, read, parts[0], scope)
        return rewrite(self.source, parts, edits, prefix=prefix, suffix=suffix)

    # Finding tables

    def _by_tree(self, tree: exp.Expr, read: EngineText) -> list[_Reference]:
        found: list[_Reference] = []
        for node in tree.find_all(exp.Table):
            starts = [part.meta["start"] for part in node.parts if "start" in part.meta]
            if not starts or not isinstance(node.this, exp.Identifier | exp.Dot):
                continue
            if is_cte(node) or node.name.startswith("frazil_"):
                continue
            at = self._index.get(read.origin(min(starts)))
            if at is None or not self._tokens[at].is_name:
                continue
            made = self._reference(at, node, has_alias=bool(node.alias))
            if made is not None:
                found.append(made)
        return found

    def _by_tokens(self, parts: Sequence[Part]) -> list[_Reference]:
        """Names after FROM and JOIN, for text that only the engine can read."""
        found: list[_Reference] = []
        for at, token in enumerate(self._tokens[1:], start=1):
            before = self._tokens[at - 1]
            inside = any(part.start <= token.start < part.end for part in parts)
            if not inside or not token.is_name or not before.is_word(*_BEFORE_TABLE):
                continue
            try:
                made = self._reference(at, None, has_alias=True)
            except NotFound:
                continue  # a CTE, or the engine will say
            if made is not None:
                end = self._index_after(made.name)
                following = self._tokens[end : end + 1]
                made.has_alias = bool(following) and (
                    following[0].is_word("as") or following[0].kind is Kind.QUOTED
                )
                found.append(made)
        return found

    def _index_after(self, name: Name) -> int:
        return next(
            (at for at, token in enumerate(self._tokens) if token.start >= name.end),
            len(self._tokens),
        )

    def _reference(self, at: int, node: exp.Table | None, *, has_alias: bool) -> _Reference | None:
        cursor = Cursor(self.source, self._tokens)
        cursor.index = at
        name = chain(cursor)
        if cursor.token is not None and cursor.token.is_symbol("("):
            return None
        travel = self._travels.get(name.end)
        try:
            meant = self._meaning(name)
        except FrazilError as error:
            raise self.source.located(name.start, error) from None
        as_of = None if travel is None else self._moment(travel)
        if travel is not None and not isinstance(meant, TableMeant):
            raise self.source.problem(
                travel.part.start, f"{name} is not a table; only tables have a history"
            )
        view = self.engine.view(str(name))
        return _Reference(name, node, meant, view, as_of, has_alias)

    def _meaning(self, name: Name) -> Meant:
        if len(name.parts) == 1:
            for given in (name.parts[0], name.parts[0].lower()):
                if given in self.engine.given:
                    return GivenMeant(data=self.engine.given[given])
        return self.engine.names.find(name.parts)

    def _moment(self, travel: TimeTravel) -> AsOf:
        if travel.expression is None:
            assert travel.value is not None
            return travel.value
        value = value_of(self.engine.connection, self.plain(travel.expression))
        if isinstance(value, date) and not isinstance(value, datetime):
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        if isinstance(value, int | str | datetime) and not isinstance(value, bool):
            return value
        raise self.source.problem(
            travel.expression.start, f"{value!r} names no snapshot, branch, tag or time"
        )

    def _change_functions(self, part: Part) -> list[Edit]:
        """`table_changes('shop.orders', since, until)` bound, and replaced by a view."""
        edits: list[Edit] = []
        for at, token in enumerate(self._tokens):
            following = self._tokens[at + 1 : at + 2]
            if not (part.start <= token.start < part.end and token.is_word(CHANGES_FUNCTION)):
                continue
            if not following or not following[0].is_symbol("("):
                continue
            cursor = Cursor(self.source, self._tokens)
            cursor.index = at + 1
            parts = cursor.bracketed("the name of a table in 'quotes'")
            try:
                values = [value_of(self.engine.connection, self.plain(each)) for each in parts]
            except FrazilError as error:
                raise self.source.located(parts[0].start, error) from None
            if not values or len(values) > 3 or not isinstance(values[0], str):
                raise self.source.problem(
                    token.start, f"expected {CHANGES_FUNCTION}('namespace.table', since, until)"
                )
            try:
                table = self.engine.names.table(undotted(values[0]))
                rows = table.changes(*values[1:])
            except FrazilError as error:
                raise self.source.located(token.start, error) from None
            view = self.engine.view(CHANGES_FUNCTION)
            self.engine.connection.register(view, given_rows(rows))
            edits.append((token.start, cursor.tokens[cursor.index - 1].end, view))
        return edits

    # Making tables known to the engine

    def _attach_all(self, references: list[_Reference], found: Found) -> bool:
        """Returns whether this depends on nothing but the states of tables."""
        constants = Constants(lambda text: value_of(self.engine.connection, text))
        for each in references:
            over = [[]] if each.node is None else found.tables.get(id(each.node), [[]])
            try:
                self._attach(each, over, constants)
            except FrazilError as error:
                raise self.source.located(each.name.start, error) from None
        self._prune_by_keys(references, found)
        is_lasting = constants.are_lasting and all(each.ready is not None for each in references)
        for each in references:
            if each.ready is None:
                continue
            try:
                self._attach_scan(each, as_view=each.node is None or self._is_bare(each))
            except FrazilError as error:
                raise self.source.located(each.name.start, error) from None
        return is_lasting

    def _attach(self, each: _Reference, over: list[list[exp.Expr]], constants: Constants) -> None:
        connection = self.engine.connection
        match each.meant:
            case GivenMeant(data=data):
                connection.register(each.view, given_rows(data))
            case ViewMeant():
                self._attach_view(each, over)
            case TableMeant(table=table, metadata=str() as which):
                if each.as_of is not None:
                    raise Unsupported(
                        f"metadata tables show the current state; {each.name} has no time travel",
                        feature="time travel on metadata tables",
                    )
                connection.register(each.view, metadata_rows(table, which))
            case TableMeant(table=table, changes=True):
                connection.register(each.view, given_rows(table.changes()))
            case TableMeant(table=table):
                as_of = each.as_of if each.as_of is not None else each.meant.as_of
                columns = self._extra_columns(table)
                scan = self.engine.scan(table, AlwaysTrue(), as_of, columns)
                where = filter_of(over, scan.table_schema, constants)
                each.scan = scan
                if not isinstance(where, AlwaysTrue):
                    each.scan, each.filter = _filtered(scan, where)
                each.ready = self._ready(each, columns)

    def _ready(self, each: _Reference, columns: Sequence[str] | None) -> ReadyScan:
        """A table's rows, planned now, or before for this query or another one."""
        assert each.scan is not None
        state = state_of(each.meant) if each.as_of is None else None
        if self.engine.scans is None or state is None:
            return ReadyScan(Planned.of(each.scan))
        each.key = state, each.filter, None if columns is None else tuple(columns)
        own = self.engine.own
        if each.key not in own:
            found = self.engine.scans.find(each.key)
            own[each.key] = found or ReadyScan(Planned.of(each.scan))
        return own[each.key]

    def _extra_columns(self, table: Table) -> list[str] | None:
        """Metadata columns that the statement names."""
        named = {token.value for token in self._tokens if token.is_name}
        own = [column.name for column in table.schema.fields]
        extra = sorted((named & _SPECIAL) - set(own))
        return [*own, *extra] if extra else None

    def _attach_scan(self, each: _Reference, *, as_view: bool) -> None:
        """Make the rows of a table known. Making a view costs as much as planning a small table,
        so that the query stands for the name wherever the grammar allows it."""
        ready, engine = each.ready, self.engine
        assert ready is not None
        report = ready.planned.plan.report
        engine.pruned.append(Pruned(name=str(each.name), filter=each.filter, report=report))
        made = ready.made
        if each.key is not None and engine.scans is not None:
            engine.scans.keep(each.key, ready)
        engine.bind(made)
        if as_view:
            made.create_view(engine.connection, each.view)
        else:
            each.query = made.text
        if engine.is_written:
            made.verify()

    def _prune_by_keys(self, references: list[_Reference], found: Found) -> None:
        """Where an inner join has a small side, read that side once, now, and prune the other by
        its keys."""
        by_node = {id(each.node): each for each in references if each.ready is not None}
        for (left, left_column), (right, right_column) in found.joined:
            ends = [(by_node.get(left), left_column), (by_node.get(right), right_column)]
            for (small, key), (large, column) in (ends, ends[::-1]):
                if small is None or large is None or not _is_worth(small, large):
                    continue
                values = self._keys(small, key)
                assert large.scan is not None
                where = key_filter(column, values, large.scan.table_schema)
                if where is not None:
                    both = And(large.scan.filter, where)
                    large.scan, large.filter = _filtered(large.scan, both)
                    large.ready, large.key = ReadyScan(Planned.of(large.scan)), None

    def _keys(self, small: _Reference, key: str) -> list[Any]:
        """The keys of a small table, which becomes a table of the engine: it is read once."""
        engine = self.engine
        if small.ready is not None:
            inner = f"{small.view}_files"
            self._attach_scan(small, as_view=True)
            engine.connection.execute(f"ALTER VIEW {small.view} RENAME TO {inner}")
            where = small.filter or "true"
            engine.connection.execute(
                f"CREATE TEMP TABLE {small.view} AS SELECT * FROM {inner} WHERE {where}"
            )
            small.ready = None
        query = f"SELECT DISTINCT {quoted(key)} AS k FROM {small.view}"
        rows = engine.connection.sql(query).to_arrow_table()
        return list(rows.column("k").to_pylist())

    def _attach_view(self, each: _Reference, over: list[list[exp.Expr]]) -> None:
        assert isinstance(each.meant, ViewMeant)
        engine = self.engine
        identifier = each.meant.state.identifier
        full = ".".join((*identifier.namespace, identifier.name))
        if full in engine.open_views:
            raise InvalidInput(f"view {full} uses itself")
        if len(engine.open_views) >= _MAX_DEPTH:
            raise InvalidInput("views are nested too deeply")
        text, namespace, columns = view_query(each.meant.state.metadata, str(each.name))
        names, engine.names = engine.names, engine.names.within(namespace)
        engine.open_views.append(full)
        source = Source(text)
        inside = tokens(source)
        outer = over[0] if len(over) == 1 else ()
        try:
            binder = Binder(engine, source, inside, [])
            made = binder.query(Part(0, len(text)), outer=outer)
            named = f"({', '.join(map(quoted, columns))})" if columns else ""
            engine.connection.execute(f"CREATE TEMP VIEW {each.view}{named} AS {made.text}")
        except FrazilError as error:
            error.args = (f"view {each.name}: {error}", *error.args[1:])
            raise
        except Exception as error:
            raise failure(error, source, engine.shown) from error
        finally:
            engine.names = names
            engine.open_views.pop()

    # The text

    def _edit(self, each: _Reference) -> Edit:
        alias = f" AS {quoted(each.name.parts[-1])}"
        named = each.has_alias or self._is_bare(each)
        text = f"({each.query})" if each.query else each.view
        return each.name.start, each.name.end, f"{text}{'' if named else alias}"

    def _is_bare(self, each: _Reference) -> bool:
        """Whether the grammar wants a name there."""
        before = self._tokens[self._index[each.name.start] - 1] if each.name.start else None
        return before is not None and before.is_word("table", "summarize", "pivot", "unpivot")

    def _qualifiers(self, parts: Sequence[Part], references: list[_Reference]) -> list[Edit]:
        """`shop.orders.id` becomes `orders.id`: the engine knows the table by its last name."""
        full = {
            tuple(part.lower() for part in each.name.parts)
            for each in references
            if len(each.name.parts) > 1 and not each.has_alias
        }
        if not full:
            return []
        used = {each.name.start for each in references}
        edits: list[Edit] = []
        cursor = Cursor(self.source, self._tokens)
        while (token := cursor.token) is not None:
            if not token.is_name:
                cursor.index += 1
                continue
            first = cursor.index
            try:
                name = chain(cursor)
            except InvalidInput:
                cursor.index = first + 1
                continue
            if name.start in used:
                continue
            for size in range(2, len(name.parts)):
                head = tuple(part.lower() for part in name.parts[:size])
                if head in full and any(p.start <= name.start < p.end for p in parts):
                    start = self._tokens[first + 2 * (size - 1)].start
                    edits.append((name.start, start, ""))
        return edits

    def _scoped(
        self, tree: exp.Expr | None, read: EngineText, part: Part, scope: Scope
    ) -> list[Edit]:
        """Columns of the changed table under the names that row-level changes have for them."""
        if tree is None:
            raise self._unreadable(part, read)
        edits: list[Edit] = []
        for column in tree.find_all(exp.Column):
            names = [each.name for each in column.parts]
            starts = [int(each.meta["start"]) for each in column.parts if "start" in each.meta]
            if len(starts) != len(names):
                continue
            start = read.origin(starts[0])
            size, alias = scope.qualifier(names)
            inner = aliases_around(column)
            if size and names[size - 1].lower() not in inner:
                if alias in inner:
                    raise self.source.unsupported(
                        start,
                        f"a subquery uses the alias {alias!r} and looks at {'.'.join(names)} "
                        "outside of it; give it another alias",
                        feature=f"alias {alias} in a subquery",
                    )
                edits.append((start, read.origin(starts[size]), f"{alias}."))
            spelled = scope.spelled(names[size]) if not inner else None
            if spelled is not None and spelled != names[size]:
                at = read.origin(starts[size])
                edits.append((at, self._tokens[self._index[at]].end, quoted(spelled)))
        return edits

    def _unreadable(self, part: Part, read: EngineText) -> FrazilError:
        """Why an expression cannot be read, in the words of the engine's own parser."""
        try:
            self.engine.connection.extract_statements(read.text)
        except Exception as error:
            return failure(error, self.source, self.engine.shown, read)
        return self.source.problem(part.start, "the expression cannot be read")


def expression_text(made: EngineText) -> str:
    """A bound expression without the SELECT before it."""
    return made.text.removeprefix("SELECT ").strip()


def _parsed(text: str) -> exp.Expr | None:
    try:
        return sqlglot.parse_one(text, dialect="duckdb")
    except sqlglot.ParseError:
        return None


def _filtered(scan: Scan, where: BooleanExpression) -> tuple[Scan, str]:
    made = replace(scan, matching=where)
    return made, duckdb_filter.condition(made.filter)


def _columns(references: list[_Reference]) -> Callable[[exp.Table], Sequence[str] | None]:
    known: dict[int, Sequence[str] | None] = {}
    for each in references:
        columns: Sequence[str] | None = None
        match each.meant:
            case TableMeant(metadata=None, changes=False, table=table):
                columns = [*(field.name for field in table.schema.fields), *_SPECIAL]
            case ViewMeant(state=state):
                columns = view_query(state.metadata, str(each.name))[2] or None
        known[id(each.node)] = columns
    return lambda node: known.get(id(node))


def _is_worth(small: _Reference, large: _Reference) -> bool:
    if large.ready is None or large.ready.planned.num_files < _MANY_FILES:
        return False
    if small.ready is None:
        return True  # read already
    rows, size = _size(small.ready.planned)
    most = _size(large.ready.planned)[1] // 8
    return rows <= _SMALL_ROWS and size <= min(_SMALL_BYTES, most)


def _size(planned: Planned) -> tuple[int, int]:
    sizes = planned.plan.files.numpy("file_size_in_bytes")
    return int(planned.records.sum()), int(sizes.sum())
