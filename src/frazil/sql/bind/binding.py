"""A query's tables as views on a DuckDB connection, each pruned by the conditions over it.

DuckDB's own tree says where the tables are, and what the query may not use is refused by it. The
text goes to the engine as it was written; only names of tables are replaced, and clauses of time
travel are taken out. The text with other names is parsed again, and must have the same tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Final

from frazil.catalog.names import undotted
from frazil.data.metadata_columns import METADATA_COLUMNS
from frazil.errors import FrazilError, InvalidInput, NotFound, Unsupported
from frazil.filter.prune.tree_filter import Constants, filter_of
from frazil.filter.text.quotes import quoted
from frazil.filter.text.sql_values import type_text
from frazil.iceberg.expressions import AlwaysTrue
from frazil.iceberg.types import IcebergType
from frazil.parser import judge
from frazil.parser import nodes as n
from frazil.parser.cursor import Name
from frazil.parser.duckdb_parser import values_of
from frazil.parser.edits import Edit, EngineText, is_renamed, rewrite
from frazil.parser.tokens import Kind, Part, Source, Token, other_spaces, tokens
from frazil.parser.tree import parse_expression, parse_query
from frazil.rows.duckdb import duckdb_shapes
from frazil.sql import caller
from frazil.sql.bind.bound_scans import (
    attach_scan,
    filtered,
    planned_scan,
    prune_by_keys,
)
from frazil.sql.bind.from_clause import Types
from frazil.sql.bind.output_names import output_names
from frazil.sql.bind.pivots import pivot_values
from frazil.sql.bind.pushed_conditions import PushedConditions, conditions
from frazil.sql.bind.references import Places, Reference, named_tables, source_names
from frazil.sql.bind.times import TimeTravel, time_travels
from frazil.sql.bind.used_columns import narrow
from frazil.sql.bind.view_sql import stored_view
from frazil.sql.engine.sql_engine import SqlEngine
from frazil.sql.name_resolution import (
    AsOf,
    Resolved,
    ResolvedRows,
    ResolvedTable,
    ResolvedView,
    given_rows,
    metadata_rows,
)
from frazil.table.table import Table
from frazil.value_classes import frozen

CHANGES_FUNCTION: Final = "table_changes"
_SPECIAL: Final = frozenset({*METADATA_COLUMNS, "_partition"})
_MAX_DEPTH: Final = 20


@frozen
class _Outer:
    """Conditions over the columns of a query, and what they call these columns."""

    conditions: Sequence[n.Expression] = ()
    names: Sequence[str] = ()


@frozen
class Unread:
    """Stands for rows that are not read now: a query without rows, and types of its columns."""

    query: str
    types: Types


@frozen
class BoundQuery:
    """A query that was bound: its tree, the text that the tree is of, what was put into the text
    for the engine, and its tables."""

    tree: n.Query
    read: EngineText
    edits: Sequence[Edit]
    references: Sequence[Reference]


class Binder:
    """Binds the queries and expressions of one statement."""

    def __init__(
        self,
        engine: SqlEngine,
        source: Source,
        statement_tokens: Sequence[Token],
        parameters: Sequence[Edit],
        unread: Mapping[int, Unread] | None = None,
    ) -> None:
        """`unread` stands for tables which are not read now, by the offsets of their names: the
        rows that a change is about."""
        self.engine = engine
        self.source = source
        self._tokens = list(statement_tokens)
        self._places = Places.of(source, self._tokens)
        self._travels = time_travels(source, self._tokens)
        cut = [(travel.part.start, travel.part.end) for travel in self._travels.values()]
        self._edits: list[Edit] = [
            *((start, end, "") for start, end in cut),
            *other_spaces(source, self._tokens),
            *(
                (token.start, token.end, quoted(token.value))
                for token in self._tokens
                if token.kind is Kind.QUOTED and source.text[token.start] == "`"
            ),
            *parameters,
        ]
        self._parameters = list(parameters)
        self.tables: list[tuple[tuple[str, ...], Resolved]] | None = None
        """The tables of the query that was bound, if to bind it again would only do the same for as
        long as these tables stay as they are."""
        self._unread = unread or {}
        self.bound: BoundQuery | None = None
        """The query that was bound last."""

    def constant_text(self, part: Part) -> str:
        """A part with parameters put in, for constants."""
        return rewrite(self.source, [part], self._parameters).text.strip()

    def constant(self, part: Part, kind: IcebergType | None = None) -> Any:
        """The value of an expression without columns, as one of a type if that is given."""
        text = rewrite(self.source, [part], self._edits)
        try:
            return value_of(text.text, kind, allow_files=self.engine.allow_files)
        except FrazilError as error:
            error.position = None
            raise self.source.with_position(part.start, error) from None

    def query(
        self,
        *parts: Part,
        outer: Sequence[n.Expression] = (),
        names: Sequence[str] = (),
        prefix: str = "",
        between: str = "",
    ) -> EngineText:
        """A query as the engine takes it; its tables are bound. `outer` are conditions over its
        columns, which are called by `names` if those are given."""
        values = pivot_values(self, self._tokens, parts)
        over = _Outer(conditions=outer, names=names)
        return self._bind(parts, prefix, over, between=between, more=values)

    def rows_of(self, part: Part) -> EngineText:
        """All columns of a table, or of a query in brackets."""
        return self._bind([part], "SELECT * FROM ")

    def _bind(
        self,
        parts: Sequence[Part],
        prefix: str,
        outer: _Outer | None = None,
        *,
        between: str = "",
        more: Sequence[Edit] = (),
    ) -> EngineText:
        def text(edits: Sequence[Edit]) -> EngineText:
            return rewrite(self.source, parts, edits, prefix=prefix, between=between)

        edits = [*self._edits, *more]
        read, query = self._parsed(text, edits)
        self._judge(query, read)
        calls = self._change_functions(query, read)
        if calls:
            edits += calls
            read, query = self._parsed(text, edits)
        references = self._references(query, read, parts)
        outer = outer or _Outer()
        columns_of = self._columns(references)
        pushed = conditions(query, columns_of, outer=outer.conditions, names=outer.names)
        narrow(query, self._tokens, references)
        moved = self._name_apart(query, read, references)
        is_lasting = self._attach_all(references, pushed)
        if is_lasting and not calls and not self._travels and not moved:
            self.tables = [
                (tuple(reference.name.parts), reference.resolved) for reference in references
            ]
        edits += [edit for edit, _ in moved.values()]
        columns = {ref: names for ref, (_, names) in moved.items()}
        tables = {reference.node: reference.new_name for reference in references}
        new_names = [reference.edit(checked=True) for reference in references]
        named = {} if self._unread else self._output_names(query, read, references, columns)

        def is_kept(new: Sequence[Edit], aliases: Mapping[n.Expression, str]) -> bool:
            after = text([*new, *new_names]).text
            near = self.engine.compiled
            return is_renamed(query, after, tables, columns, aliases, near=near)

        aliases = {output: name for output, (_, name) in named.items()}
        with_names = [*edits, *(edit for edit, _ in named.values())]
        if is_kept(with_names, aliases):
            edits = with_names
        # Where an output ends may not be found: then it is called after our text.
        elif not named or not is_kept(edits, {}):
            raise InvalidInput(
                "the query cannot be bound: with its tables put in, it would be another query"
            )
        edits += [reference.edit(checked=False) for reference in references]
        self.bound = BoundQuery(tree=query, read=read, edits=edits, references=references)
        return text(edits)

    def _parsed(
        self, text: Callable[[Sequence[Edit]], EngineText], edits: Sequence[Edit]
    ) -> tuple[EngineText, n.Query]:
        read = text(edits)
        try:
            return read, parse_query(read.text, self.engine.compiled)
        except InvalidInput as error:
            raise read.with_origin(error, self.source) from None

    def _judge(self, query: n.Query, read: EngineText) -> None:
        try:
            judge.check(
                query,
                Source(read.text),
                allow_files=self.engine.allow_files,
                own=(CHANGES_FUNCTION,),
            )
            duckdb_shapes.provide(self.engine.compiled, read.text)
        except FrazilError as error:
            raise read.with_origin(error, self.source) from None

    # Finding tables

    def _references(
        self, query: n.Query, read: EngineText, parts: Sequence[Part]
    ) -> list[Reference]:
        references: list[Reference] = []
        taken: set[int] = set()
        used: set[int] = set()
        for ref in named_tables(query):
            if not isinstance(ref, n.BaseTable) or ref.path[-1].startswith(self.engine.prefix):
                continue
            name = self._places.name_of(ref, read, taken)
            if isinstance(name, Token):
                if self.engine.allow_files:
                    continue
                raise self.source.unsupported(
                    name.start,
                    "a file is not a table here; catalog.sql(…, allow_files=True) permits it",
                    feature="files as tables",
                )
            taken.add(name.start)
            try:
                resolved = self._resolved(name)
            except FrazilError as error:
                raise self.source.with_position(name.start, error) from None
            if resolved is None:
                continue
            reference = Reference(
                node=ref,
                name=name,
                resolved=resolved,
                view=self.engine.view(str(name)),
                is_bare=self._places.is_bare(name.start),
                is_unread=name.start in self._unread,
            )
            reference.as_of = self._moment_of(reference, used)
            if isinstance(resolved, ResolvedTable) and not resolved.is_special:
                self._open_scan(reference, resolved)
            references.append(reference)
        for end, travel in self._travels.items():
            inside = any(part.start <= travel.part.start < part.end for part in parts)
            if inside and end not in used:
                raise self.source.problem(travel.part.start, "expected a table before this clause")
        return references

    def _resolved(self, name: Name) -> Resolved | None:
        parts = name.parts
        if name.start in self._unread:
            return ResolvedRows(data=None)
        if len(parts) == 1:
            for name_given in (parts[0], parts[0].lower()):
                if name_given in self.engine.registered:
                    return ResolvedRows(data=self.engine.registered[name_given])
        try:
            return self.engine.names.find(parts)
        except NotFound:
            if len(parts) == 1 and self.engine.sees_variables and not self.engine.open_views:
                variable = caller.variable(parts[0])
                if variable is not None:
                    return ResolvedRows(data=variable)
            if self.engine.allow_files and len(parts) == 1 and "." in parts[0]:
                return None  # "file.parquet": the engine says
            raise

    def _open_scan(self, reference: Reference, resolved: ResolvedTable) -> None:
        as_of = reference.as_of if reference.as_of is not None else resolved.as_of
        reference.columns = self._extra_columns(resolved.table)
        self.engine.include(resolved.table.location)
        try:
            reference.scan = self.engine.scan(
                resolved.table, AlwaysTrue(), as_of, reference.columns
            )
        except FrazilError as error:
            raise self.source.with_position(reference.name.start, error) from None
        if not reference.scan.table_schema.fields:
            raise self.source.problem(
                reference.name.start,
                f"{reference.name} has no columns yet; ALTER TABLE … ADD COLUMN adds one",
            )

    def _moment_of(self, reference: Reference, used: set[int]) -> AsOf | None:
        """The state of a table that a clause after its name, or after its alias, asks for."""
        for end in (reference.name.end, self._places.end_of(reference)):
            travel = self._travels.get(end)
            if travel is None:
                continue
            used.add(end)
            if not isinstance(reference.resolved, ResolvedTable):
                raise self.source.problem(
                    travel.part.start,
                    f"{reference.name} is not a table; only tables have a history",
                )
            return self._moment(travel)
        return None

    def _moment(self, travel: TimeTravel) -> AsOf:
        if travel.expression is None:
            assert travel.value is not None
            return travel.value
        value = self.constant(travel.expression)
        if isinstance(value, date) and not isinstance(value, datetime):
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        if isinstance(value, int | str | datetime) and not isinstance(value, bool):
            return value
        raise self.source.problem(
            travel.expression.start, f"{value!r} is not a snapshot id, branch, tag or time"
        )

    def _change_functions(self, query: n.Query, read: EngineText) -> list[Edit]:
        """`table_changes('shop.orders', since, until)` bound, and replaced by a view."""
        edits: list[Edit] = []
        for ref in named_tables(query):
            if not isinstance(ref, n.TableFunction) or ref.start is None:
                continue
            function = ref.function
            if not isinstance(function, n.Function) or function.name != CHANGES_FUNCTION:
                continue
            start = read.origin(ref.start)
            number = self._places.index[start]
            cursor = self._places.cursor(number + 1)
            parts = cursor.bracketed("the name of a table in 'quotes'")
            values = [self.constant(part) for part in parts]
            if not values or len(values) > 3 or not isinstance(values[0], str):
                raise self.source.problem(
                    start, f"expected {CHANGES_FUNCTION}('namespace.table', since, until)"
                )
            try:
                table = self.engine.names.table(undotted(values[0]))
                rows = table.changes(*values[1:])
            except FrazilError as error:
                raise self.source.with_position(start, error) from None
            view = self.engine.view(CHANGES_FUNCTION)
            self.engine.register_changes(view, rows, table)
            alias = "" if ref.alias else f" AS {CHANGES_FUNCTION}"
            edits.append((start, cursor.since(start).end, quoted(view) + alias))
        return edits

    def _columns(self, references: list[Reference]) -> Callable[[n.BaseTable], Types | None]:
        columns_by_table: dict[n.BaseTable, Types] = {}
        for reference in references:
            match reference.resolved:
                case _ if reference.is_unread:
                    columns_by_table[reference.node] = self._unread[reference.name.start].types
                case ResolvedTable() if reference.scan is not None:
                    fields = reference.scan.table_schema.fields
                    types = {field.name: field.field_type for field in fields}
                    columns_by_table[reference.node] = {
                        name: types.get(name) for name in reference.columns or types
                    }
                case ResolvedView(state=state):
                    columns = stored_view(state.metadata, str(reference.name)).columns
                    if columns:
                        columns_by_table[reference.node] = dict.fromkeys(columns)
        return columns_by_table.get

    def _output_names(
        self,
        query: n.Query,
        read: EngineText,
        references: list[Reference],
        columns: Mapping[n.ColumnRef, tuple[str, ...]],
    ) -> dict[n.Expression, tuple[Edit, str]]:
        replaced: dict[n.BaseTable | n.ColumnRef, int] = {
            reference.node: self._places.index[reference.name.start] for reference in references
        }
        for ref in columns:
            assert ref.start is not None
            replaced[ref] = self._places.index[read.origin(ref.start)]
        return output_names(query, self._tokens, replaced)

    # Telling tables of one name apart

    def _name_apart(
        self,
        query: n.Query,
        read: EngineText,
        references: list[Reference],
    ) -> dict[n.ColumnRef, tuple[Edit, tuple[str, ...]]]:
        """Put tables into schemas of the engine where their namespaces matter: two tables of one
        name, or columns like `shop.orders.id`. DuckDB's own rules say then what a name means.
        Returns the columns that are called by the schema now."""
        unaliased = [
            reference
            for reference in references
            if not (reference.node.alias or reference.is_bare) and len(reference.full_name) > 1
        ]
        called = [alias for inner in n.walk_queries(query) for alias in source_names(inner)]
        fulls = [reference.full_name for reference in unaliased]
        crowded = any(called.count(full[-1]) > fulls.count(full) for full in fulls)
        moved: dict[n.ColumnRef, tuple[Edit, tuple[str, ...]]] = {}
        shared = {reference.full_name for reference in unaliased if reference.is_unread}
        # Queries of one statement call the rows of a change alike. Other tables get new schemas for
        # each query: a view that is read twice prunes the same table in two ways.
        schemas = {
            full: self.engine.shared_schema(full)
            if full in shared
            else self.engine.view(".".join(full[:-1]))
            for full in fulls
        }
        for ref in n.expressions_of(query):
            if not isinstance(ref, n.ColumnRef) or ref.start is None:
                continue
            names = ref.names
            lower = tuple(name.lower() for name in names)
            for size in range(len(lower) - 1, 1, -1):
                owners = [
                    reference
                    for reference in unaliased
                    if reference.full_name[-size:] == lower[:size]
                ]
                number = self._places.index.get(read.origin(ref.start))
                if owners and number is not None:
                    schema = schemas[owners[0].full_name]
                    last = self._tokens[number + 2 * (size - 1)]
                    edit = (self._tokens[number].start, last.start, f"{quoted(schema)}.")
                    moved[ref] = edit, (schema, *names[size - 1 :])
                    break
        if moved or crowded:
            for reference in unaliased:
                reference.schema = schemas[reference.full_name]
        return moved

    # Making tables known to the engine

    def _attach_all(self, references: list[Reference], pushed: PushedConditions) -> bool:
        """Returns whether this depends on nothing but the states of tables."""
        constants = Constants()
        self._share_views(references, pushed)
        for reference in references:
            try:
                self._attach(reference, pushed.tables.get(reference.node, [[]]), constants)
            except FrazilError as error:
                raise self.source.with_position(reference.name.start, error) from None
        prune_by_keys(self.engine, references, pushed)
        is_lasting = constants.are_lasting and all(
            reference.ready is not None for reference in references
        )
        for reference in references:
            try:
                if reference.ready is not None:
                    attach_scan(
                        self.engine, reference, as_view=reference.is_bare or bool(reference.schema)
                    )
                if reference.schema:
                    self.engine.view_in_schema(
                        reference.schema, reference.name.parts[-1], reference.view
                    )
            except FrazilError as error:
                raise self.source.with_position(reference.name.start, error) from None
        return is_lasting

    def _share_views(self, references: list[Reference], pushed: PushedConditions) -> None:
        """Tables that are known by a namespace and a name are one view each, however often they
        are named: its rows are those that one of the places needs."""
        views: dict[tuple[str, ...], list[Reference]] = {}
        for reference in references:
            if reference.schema:
                views.setdefault(reference.full_name, []).append(reference)
        for same in (same for same in views.values() if len(same) > 1):
            if any(reference.as_of != same[0].as_of for reference in same):
                raise self.source.problem(
                    same[1].name.start, f"give {same[1].name} an alias: it is two states of a table"
                )
            over = [one for reference in same for one in pushed.tables.get(reference.node, [[]])]
            if any(reference.is_unread for reference in same):
                over = [[]]  # other queries of the statement make the same view
            for reference in same:
                pushed.tables[reference.node] = over
                reference.is_shared = True

    def _attach(
        self, reference: Reference, over: list[list[n.Expression]], constants: Constants
    ) -> None:
        match reference.resolved:
            case _ if reference.is_unread:
                rows = self._unread[reference.name.start].query
                self.engine.run_own(f"CREATE OR REPLACE TEMP VIEW {reference.view} AS {rows}")
            case ResolvedRows(data=data):
                self.engine.connection.register(reference.view, given_rows(data))
            case ResolvedView():
                self._attach_view(reference, over)
            case ResolvedTable(table=table, metadata=str() as which):
                if reference.as_of is not None:
                    raise Unsupported(
                        f"metadata tables show the current state; {reference.name} has no "
                        "time travel",
                        feature="time travel on metadata tables",
                    )
                rows = metadata_rows(table, which)
                self.engine.connection.register(reference.view, rows)
            case ResolvedTable(table=table, changes=True):
                self.engine.register_changes(reference.view, table.changes(), table)
            case ResolvedTable():
                assert reference.scan is not None
                where = filter_of(
                    over,
                    reference.scan.table_schema,
                    constants,
                    expressions=reference.scan.expressions(),
                )
                if not isinstance(where, AlwaysTrue):
                    reference.scan, reference.filter = filtered(reference.scan, where)
                reference.ready = planned_scan(self.engine, reference)

    def _extra_columns(self, table: Table) -> list[str] | None:
        """Metadata columns that the statement names."""
        named = {token.value for token in self._tokens if token.is_name}
        columns = [column.name for column in table.metadata.schema().fields]
        extra = sorted((named & _SPECIAL) - set(columns))
        return [*columns, *extra] if extra else None

    def _attach_view(self, reference: Reference, over: list[list[n.Expression]]) -> None:
        assert isinstance(reference.resolved, ResolvedView)
        engine = self.engine
        full = ".".join(reference.resolved.full_name)
        if full in engine.open_views:
            raise InvalidInput(f"view {full} uses itself")
        if len(engine.open_views) >= _MAX_DEPTH:
            raise InvalidInput("views are nested too deeply")
        view = stored_view(reference.resolved.state.metadata, str(reference.name))
        names, engine.names = engine.names, engine.names.within(view.namespace)
        # What the statement gives or allows is not for the texts of views.
        registered, engine.registered = engine.registered, {}
        allows, engine.allow_files = engine.allow_files, False
        engine.open_views.append(full)
        source = Source(view.text)
        try:
            binder = Binder(engine, source, tokens(source), [])
            part = Part(0, len(view.text.rstrip().rstrip(";")))
            if view.may_have_moved:
                view = view.with_query_columns(engine.columns_of(binder.query(part).text))
            outer = view.own_conditions(over[0]) if len(over) == 1 else ()
            called = () if view.query_columns else view.columns
            query = binder.query(part, outer=outer, names=called)
            view.check_columns(lambda: engine.columns_of(query.text))
            engine.run_own(f"CREATE TEMP VIEW {reference.view}{view.selected()} (\n{query.text}\n)")
        except FrazilError as error:
            error.args = (f"view {reference.name}: {error}", *error.args[1:])
            error.position = None  # in the view's text, not in this one
            raise
        except Exception as error:
            problem = engine.failure(error, source)
            problem.args = (f"view {reference.name}: {problem}", *problem.args[1:])
            raise problem from error
        finally:
            engine.names, engine.registered, engine.allow_files = names, registered, allows
            engine.open_views.pop()


def value_of(text: str, kind: IcebergType | None = None, *, allow_files: bool = False) -> Any:
    """The value of an expression without columns."""
    node = parse_expression(text)
    query = parse_query(f"SELECT {text}\n")
    judge.check(query, Source(f"SELECT {text}\n"), allow_files=allow_files)
    if any(part.queries for part in node.walk()):
        raise InvalidInput(f"{text.strip()}: expected a value without a query")
    if kind is not None:
        node = parse_expression(f"CAST((\n{text}\n) AS {type_text(kind)})")
    return values_of([node.raw])[0]
