"""Where the tables of a query stand in its text, and what has to be put there.

A reference knows the tokens of its name. Its rows become a view of the engine, or a SELECT that
stands for the name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from frazil.filter.text.quotes import quoted
from frazil.parser import nodes as n
from frazil.parser.cursor import Cursor, Name, chain
from frazil.parser.edits import Edit, EngineText, NewName
from frazil.parser.tokens import Kind, Source, Token
from frazil.rows.scan import Scan
from frazil.sql.engine.scan_cache import Key, PlannedScan
from frazil.sql.name_resolution import AsOf, Resolved
from frazil.value_classes import dataclass, field

_BARE: Final = ("table", "summarize", "describe", "desc", "show", "pivot", "unpivot")

_Paths = frozenset[tuple[str, ...]]


def named_tables(query: n.Query, ctes: _Paths = frozenset()) -> Iterator[n.TableRef]:
    """The tables and table functions of a query and of all queries inside it, but not the names
    that WITH defines where they can be seen. A recursive query with keys sees all rows it has so
    far as `recurring.name`."""
    visible = ctes
    for cte in query.ctes:  # each sees those before it, and itself if it is recursive
        name = cte.name.lower()
        itself = {(name,), ("recurring", name)} if cte.is_recursive else set()
        yield from named_tables(cte.query, visible | itself)
        visible |= {(name,)}
    if isinstance(query, n.Select):
        for ref in n.walk_tables(query.source):
            if isinstance(ref, n.BaseTable):
                if tuple(part.lower() for part in ref.path) not in visible:
                    yield ref
            elif isinstance(ref, n.TableFunction):
                yield ref
    for inner in n.direct_queries(query):
        yield from named_tables(inner, visible)


def source_names(query: n.Query) -> list[str]:
    """What the sources of a query's FROM are called, in lower case."""
    if not isinstance(query, n.Select):
        return []
    refs = n.walk_tables(query.source)
    names = [ref.alias or (ref.path[-1] if isinstance(ref, n.BaseTable) else "") for ref in refs]
    return [name.lower() for name in names if name]


@dataclass(slots=True)
class Reference:
    """A table of a query."""

    node: n.BaseTable
    name: Name
    resolved: Resolved
    view: str
    is_bare: bool
    """Whether the grammar wants a name there."""
    as_of: AsOf | None = None
    columns: list[str] | None = None
    """Those of the scan, if there are more than the table's own."""
    scan: Scan | None = None
    ready: PlannedScan | None = None
    """Its rows, if they are a table's and not read yet."""
    filter: str = ""
    """The scan's filter as text."""
    key: Key | None = None
    """By what other uses of the same rows find them."""
    query: str = ""
    """The SELECT of its rows where it stands for the name; else there is a view."""
    schema: str = ""
    """The engine's schema that the view is in, where namespaces tell tables apart."""
    is_shared: bool = False
    """Whether other references are the same view."""
    is_unread: bool = False
    """Whether it stands for rows that are not read now: those that a change is about."""
    keys: list[tuple[str, list[Any]]] = field(default_factory=list)
    """Of such rows: columns, and which values an inner join leaves."""

    @property
    def full_name(self) -> tuple[str, ...]:
        """The name with its namespace, in lower case."""
        parts = getattr(self.resolved, "full_name", None) or self.name.parts
        return tuple(part.lower() for part in parts)

    @property
    def new_name(self) -> NewName:
        """What it is called in the text that is checked."""
        if self.schema:
            return NewName(path=(self.schema, self.name.parts[-1]), alias=self.node.alias)
        alias = "" if self.is_bare else self.name.parts[-1]
        return NewName(path=(self.view,), alias=self.node.alias or alias)

    def edit(self, *, checked: bool) -> Edit:
        """What is put in place of its name: in the text that is checked, a name."""
        new = self.new_name
        text = ".".join(map(quoted, new.path))
        if self.query and not checked:
            text = f"({self.query})"
        alias = f" AS {quoted(new.alias)}" if new.alias and not self.node.alias else ""
        return self.name.start, self.name.end, text + alias


@dataclass(frozen=True, slots=True)
class Places:
    """Finds the tokens of a tree's tables and columns."""

    source: Source
    tokens: Sequence[Token]
    index: dict[int, int]
    """The number of the token at an offset."""

    @staticmethod
    def of(source: Source, tokens: Sequence[Token]) -> Places:
        """Those of a text."""
        index = {token.start: number for number, token in enumerate(tokens)}
        return Places(source, tokens, index)

    def cursor(self, number: int) -> Cursor:
        """A cursor at a token."""
        cursor = Cursor(self.source, self.tokens)
        cursor.index = number
        return cursor

    def name_of(self, table: n.BaseTable, read: EngineText, taken: set[int]) -> Name | Token:
        """The name of a table as it was written; a token if it is a text in quotes, which DuckDB
        takes for a file."""
        if table.start is None:
            return self._unplaced(table, taken)
        number = self.index.get(read.origin(table.start))
        if number is None:
            raise self.source.problem(0, f"{'.'.join(table.path)} cannot be found in the text")
        if any(token.is_symbol(":") for token in self.tokens[number + 1 : number + 2]):
            number += 2  # alias: table
        if self.tokens[number].kind is Kind.STRING:
            return self.tokens[number]
        return chain(self.cursor(number))

    def _unplaced(self, table: n.BaseTable, taken: set[int]) -> Name | Token:
        """DuckDB 2.0 does not say where the table of SUMMARIZE stands."""
        for number, token in enumerate(self.tokens[1:], start=1):
            if not self.is_bare(token.start) or token.start in taken:
                continue
            if token.kind is Kind.STRING and (token.value,) == table.path:
                return token
            if token.is_name:
                name = chain(self.cursor(number))
                if name.parts == table.path:
                    return name
        raise self.source.problem(0, f"{'.'.join(table.path)} cannot be found in the text")

    def is_bare(self, start: int) -> bool:
        """Whether a word stands before an offset that a name must follow."""
        number = self.index[start]
        return bool(number) and self.tokens[number - 1].is_word(*_BARE)

    def end_of(self, reference: Reference) -> int:
        """Where a table ends with its alias and the columns of it."""
        cursor = self.cursor(self._number_at(reference.name.end))
        alias = reference.node.alias
        cursor.take("as")
        if alias and cursor.token is not None and cursor.token.value == alias:
            cursor.index += 1
        return self.tokens[cursor.index - 1].end

    def _number_at(self, offset: int) -> int:
        for number in range(len(self.tokens) - 1, -1, -1):
            if self.tokens[number].start < offset:
                return number + 1
        return 0
