"""Queries of ours that are made of slices of a statement: how changes of rows are judged and bound.

DuckDB's tree exists for queries only. So the expressions of an UPDATE, DELETE or MERGE stand in a
SELECT over the tables that they may look at. It is parsed and judged like any query, its tables are
bound, and DuckDB's binder says whether its names and types are right, over rows that are empty. The
slices of the text that was bound are what a change evaluates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from frazil.errors import FrazilError
from frazil.filter.condition import Condition
from frazil.filter.prune.tree_filter import exact_filter_of, key_filter
from frazil.filter.text.quotes import quoted
from frazil.filter.text.sql_text import RESERVED, RowsName, SqlText, has_window, lambda_names
from frazil.filter.text.sql_values import type_text
from frazil.iceberg.expressions import AlwaysTrue, And
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import NestedField
from frazil.parser import nodes as n
from frazil.parser.cursor import Name
from frazil.parser.edits import Edit, EngineText, Slices, rewrite
from frazil.parser.tokens import Part, Source
from frazil.rows.engine import Constant
from frazil.sql.bind.binding import Unread
from frazil.sql.bind.from_clause import Types
from frazil.sql.bind.references import source_names
from frazil.value_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from frazil.sql.run.execution import Execution


GIVES_ROWS: Final = frozenset({"unnest", "unlist", "generate_subscripts", "regexp_split_to_table"})
"""Functions that make rows of one row."""


@frozen
class Rows:
    """Rows that expressions may look at: what the statement calls them, and a query without rows
    that has their columns."""

    name: Name | None
    """A table's name, which columns may be called by, unless there is an alias."""
    alias: str | None
    columns: Sequence[str]
    empty: str

    @property
    def types(self) -> Types:
        """The types of the columns, where they are known."""
        return dict.fromkeys(self.columns)

    @property
    def label(self) -> str:
        """What a user calls them."""
        return self.alias or ("" if self.name is None else self.name.parts[-1])

    @property
    def qualifiers(self) -> frozenset[tuple[str, ...]]:
        """What may stand before their columns, in lower case."""
        if self.alias is not None or self.name is None:
            return frozenset({(self.label.lower(),)})
        parts = tuple(part.lower() for part in self.name.parts)
        return frozenset(parts[at:] for at in range(len(parts)))


@frozen
class TargetRows(Rows):
    """The rows of the table that a statement changes."""

    schema: Schema

    @property
    def types(self) -> Types:
        """The types of the table's own columns."""
        own = {field.name: field.field_type for field in self.schema.fields}
        return {name: own.get(name) for name in self.columns}

    @staticmethod
    def of(
        schema: Schema, name: Name, alias: str | None, special: Iterable[NestedField] = ()
    ) -> TargetRows:
        """Rows of a table; `special` are columns of metadata that may be looked at."""
        columns = [*schema.fields, *special]
        empty = ", ".join(
            f"CAST(NULL AS {type_text(field.field_type)}) AS {quoted(field.name)}"
            for field in columns
        )
        return TargetRows(
            name=name,
            alias=alias,
            columns=[field.name for field in columns],
            empty=f"SELECT {empty} WHERE false",
            schema=schema,
        )

    def path(self, name: Name, taken: Iterable[tuple[str, ...]], at: Execution) -> tuple[str, ...]:
        """A column, or a part of one, that is assigned to; it may be qualified."""
        path = self._path(name, at)
        if any(_meet(other, path) for other in taken):
            raise at.source.problem(name.start, f"column {'.'.join(path)} is assigned twice")
        return path

    def default(self, path: tuple[str, ...], part: Part, at: Execution) -> Constant | None:
        """The default of a column, if DEFAULT is assigned to it."""
        if at.source.of(part).strip().lower() != "default":
            return None
        return Constant(value=self.schema.find_field(".".join(path)).write_default)

    def _path(self, name: Name, at: Execution) -> tuple[str, ...]:
        lower = tuple(part.lower() for part in name.parts)
        for size in range(len(lower)):
            if size and lower[:size] not in self.qualifiers:
                continue
            path = _spelled(self.schema.fields, lower[size:])
            if path is not None:
                return path
        columns = ", ".join(field.name for field in self.schema.fields)
        raise at.source.problem(name.start, f"unknown column {name}; the table has {columns}")


def _spelled(fields: Iterable[NestedField], path: Sequence[str]) -> tuple[str, ...] | None:
    """A path of names as the schema spells it; SQL ignores case."""
    for column in fields:
        if column.name.lower() == path[0]:
            if len(path) == 1:
                return (column.name,)
            parts = getattr(column.field_type, "fields", ())
            inner = _spelled(parts, path[1:])
            return None if inner is None else (column.name, *inner)
    return None


def _meet(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def known_columns(names: Sequence[Name], schema: Schema, at: Execution) -> list[str]:
    """Columns of a table as it spells them."""
    spelling = {field.name.lower(): field.name for field in schema.fields}
    columns = []
    for name in names:
        column = spelling.get(name.parts[0].lower()) if len(name.parts) == 1 else None
        if column is None:
            raise at.source.problem(
                name.start, f"unknown column {name}; the table has {', '.join(spelling.values())}"
            )
        columns.append(column)
    return columns


@frozen
class BoundSlices:
    """A query of slices, bound."""

    query: n.Select
    names_of_rows: Sequence[tuple[Rows, RowsName]]
    """What the rows are called in the bound text."""
    keys: Sequence[tuple[str, Sequence[Any]]]
    """Columns of the rows, and the keys that tables beside them have."""
    _source: Source
    _read: EngineText
    _edits: Sequence[Edit]

    def offset(self, node: n.Expression) -> int:
        """Where a part of the tree stands in the text of slices."""
        return 0 if node.start is None else self._read.origin(node.start)

    def text(self, part: Part, more: Sequence[Edit] = ()) -> str:
        """A slice as the engine evaluates it."""
        return rewrite(self._source, [part], [*self._edits, *more]).text.strip()

    def called(self, rows: Rows) -> RowsName | None:
        """What rows are called, if they are part of the query."""
        return next((name for known, name in self.names_of_rows if known is rows), None)

    def names(self) -> frozenset[str]:
        """Every name in the query, in lower case."""
        return frozenset(
            name.lower()
            for node in n.expressions_of(self.query)
            if isinstance(node, n.ColumnRef)
            for name in node.names
        )

    def sql(self, part: Part, rows: Rows, *, tables: str = "") -> SqlText:
        """An expression, over rows and more tables."""
        name = self.called(rows)
        assert name is not None
        return self._sql(self.text(part), name, tables)

    def _sql(self, text: str, rows: RowsName, tables: str = "") -> SqlText:
        has_query = any(top.queries for output in self.query.outputs for top in output.walk())
        if self.query.where is not None:
            has_query |= any(node.queries for node in self.query.where.walk())
        return SqlText(
            text=text,
            names=self.names(),
            rows=rows,
            tables=tables,
            has_query=has_query,
            has_window=any(map(has_window, self.query.outputs)),
        )

    def alone(self, number: int, part: Part, rows: Rows, name: RowsName) -> SqlText:
        """An expression over these rows alone, which is evaluated beside others: columns without a
        name of rows before them get it. It is an output of the query, given by its number."""
        tree = self.query.outputs[number]
        columns = {column.lower() for column in rows.columns} - set(lambda_names(tree))
        edits = [
            (self.offset(node), self.offset(node), f"{name}.")
            for node in tree.walk()
            if isinstance(node, n.ColumnRef)
            and node.names[0].lower() in columns
            and not _qualifier_size(node, rows)
        ]
        return self._sql(self.text(part, edits), name)


def _qualifier_size(node: n.ColumnRef, rows: Rows) -> int:
    """How many of a column's names are those of its rows; a name of rows goes before a column's."""
    lower = tuple(name.lower() for name in node.names)
    columns = {name.lower() for name in rows.columns}
    sizes = (
        size
        for size in range(len(lower) - 1, 0, -1)
        if lower[:size] in rows.qualifiers and lower[size] in columns
    )
    return next(sizes, 0)


@contextmanager
def at_origin(ran: EngineText, source: Source) -> Iterator[None]:
    """Positions in a text that was put together become positions in the statement."""
    try:
        yield
    except FrazilError as error:
        raise ran.with_origin(error, source) from error.__cause__


def bind(at: Execution, slices: Slices, rows: Mapping[int, Rows]) -> BoundSlices:
    """Judge and bind a query of slices. `rows` has, by the offset of their name in it, rows that
    are not read now: those that the change is about."""
    text = slices.text
    source = Source(text.text)
    with at_origin(text, at.source):
        unread = {start: Unread(query=its.empty, types=its.types) for start, its in rows.items()}
        binder = at.row_binder_of(source, unread)
        ran = binder.query(Part(0, len(source.text)))
        assert binder.bound is not None
        query = binder.bound.tree
        assert isinstance(query, n.Select)
        bound = BoundSlices(
            query=query,
            names_of_rows=[
                (
                    rows[reference.name.start],
                    RowsName(reference.node.alias or reference.name.parts[-1], reference.schema),
                )
                for reference in binder.bound.references
                if reference.is_unread
            ],
            keys=[keys for reference in binder.bound.references for keys in reference.keys],
            _source=source,
            _read=binder.bound.read,
            _edits=binder.bound.edits,
        )
        _check(bound, source, rows)
        at.check_bound(ran, source)
    return bound


def condition_of(
    bound: BoundSlices, target: Rows, where: Part, tables: str, schema: Schema
) -> Condition:
    """The condition of a query of slices, for the rows of the table that it is about."""
    assert bound.query.where is not None
    others = {*source_names(bound.query)} - {target.label.lower()}

    def path_of(node: n.ColumnRef) -> tuple[str, ...] | None:
        if node.names[0].lower() in others:
            return None
        size = _qualifier_size(node, target)
        is_target = node.names[size].lower() in {name.lower() for name in target.columns}
        return node.names[size:] if is_target else None

    pruning, is_exact = exact_filter_of(bound.query.where, schema, path_of=path_of)
    if is_exact and not tables:
        return Condition(filter=pruning)
    for column, values in bound.keys:
        pruning = And(pruning, key_filter(column, values, schema) or AlwaysTrue())
    return Condition(filter=pruning, sql=bound.sql(where, target, tables=tables))


def _check(bound: BoundSlices, source: Source, rows: Mapping[int, Rows]) -> None:
    """Refuse what would see more than the columns of the rows."""
    query = bound.query
    tops = [*query.outputs, *([] if query.where is None else [query.where])]
    whole = {target.label.lower() for target in rows.values()} - {
        column.lower() for target in rows.values() for column in target.columns
    }
    for node in (node for top in tops for node in top.walk()):
        if isinstance(node, n.Star):
            raise source.problem(bound.offset(node), "* is not a value; name the columns")
        if isinstance(node, n.Window):
            raise source.problem(
                bound.offset(node),
                "a value of one row cannot come from a window; write a subquery or FROM",
            )
        if isinstance(node, n.Function) and node.name in GIVES_ROWS:
            raise source.problem(bound.offset(node), f"{node.name} gives rows, not one value")
        if (
            isinstance(node, n.ColumnRef)
            and node.names[1:] == ()
            and node.names[0].lower() in whole
        ):
            raise source.unsupported(
                bound.offset(node),
                f"{node.names[0]} is a whole row; name its columns",
                feature="a row as a value",
            )
    for node in n.expressions_of(query):
        if isinstance(node, n.ColumnRef) and node.names[0].lower().startswith(RESERVED):
            raise source.problem(
                bound.offset(node), f"names that begin with {RESERVED} are reserved"
            )
