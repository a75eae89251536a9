"""SQL expressions of users: judged on DuckDB's tree, checked against columns, values filled in.

DuckDB's own parser reads the text, and the text that was read is what an engine evaluates: nothing
is printed again. Plain filters (`filter.text.filter_text`) need no engine and never come here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from frazil.errors import InvalidInput
from frazil.filter.text.quotes import quoted
from frazil.filter.text.sql_values import value_text
from frazil.filter.text.tokens import problem_at
from frazil.format.checks import check_text
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import IcebergType, StructType
from frazil.value_classes import dataclass, frozen

if TYPE_CHECKING:
    from frazil.parser import nodes as n

RESERVED: Final = "__frazil_"
"""How names begin that no text of a user may have."""
TARGET, SOURCE = "t", "s"
"""What the rows of the table and of the source are called in a merge."""
Columns = Mapping[str, IcebergType | None]
"""Top-level columns by name; no type where it does not matter."""


@dataclass(frozen=True, slots=True)
class RowsName:
    """What expressions call rows: a name, and the engine's schema that it is in where namespaces
    tell tables apart."""

    name: str
    schema: str = ""

    def __str__(self) -> str:
        """As SQL has it."""
        return f"{quoted(self.schema)}.{quoted(self.name)}" if self.schema else quoted(self.name)


ROWS: Final = RowsName(f"{RESERVED}rows")
"""What the rows of a table are called where the text has no name for them."""


@frozen
class Expression:
    """SQL that stands for a value. Made by `frazil.expr("price * 1.1")`."""

    text: str
    params: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return with_params(self.text, self.params)


@frozen
class SqlText:
    """A judged expression over rows that are called `rows`, and over more `tables` of a FROM."""

    text: str
    names: frozenset[str] | None
    """Every name in it, in lower case; None where it may mean any column."""
    rows: RowsName = ROWS
    tables: str = ""
    has_query: bool = False
    """Whether a query is inside, which may look at other tables."""
    has_window: bool = False
    """Whether a window function is inside, which looks at other rows."""

    def columns(self, names: Iterable[str]) -> list[str]:
        """Those of the columns that it may look at."""
        return [name for name in names if self.names is None or name.lower() in self.names]


def columns_of_schema(schema: Schema) -> Columns:
    """The columns of a table that an expression may name."""
    return {field.name: field.field_type for field in schema.fields}


def sql_text(
    expression: str | Expression,
    scopes: Mapping[str, Columns],
    *,
    case_sensitive: bool = True,
    what: str = "expression",
) -> SqlText:
    """Judge one expression; every column must belong to one of the scopes, given by alias."""
    return judged(expression, scopes, case_sensitive=case_sensitive, what=what)[0]


def judged(
    expression: str | Expression,
    scopes: Mapping[str, Columns],
    *,
    case_sensitive: bool = True,
    what: str = "expression",
) -> tuple[SqlText, n.Expression]:
    """The same, and its tree."""
    written = expression if isinstance(expression, Expression) else Expression(text=expression)
    text = with_params(written.text, written.params, what=what)
    tree = parsed(text, what)
    _Names(text, scopes, case_sensitive=case_sensitive, what=what).check(tree)
    (rows, columns), *others = scopes.items()
    if not others and rows != ROWS.name:
        text = qualified(text, tree, rows, columns)
    sql = SqlText(
        text=text,
        names=names_in(tree),
        rows=RowsName(rows),
        has_query=any(node.queries for node in tree.walk()),
        has_window=has_window(tree),
    )
    return sql, tree


def parsed(text: str, what: str = "expression") -> n.Expression:
    """The tree of a text that is one expression and may be evaluated."""
    from frazil.parser import judge
    from frazil.parser.duckdb_parser import TOO_DEEP
    from frazil.parser.tokens import Source
    from frazil.parser.tree import parse_expression

    if not text.strip():
        raise InvalidInput(f"the {what} is empty")
    try:
        tree = parse_expression(text)
        judge.check(tree, Source(text))
    except InvalidInput as error:
        raise _at(text, error, what) from None
    except RecursionError:
        raise InvalidInput(f"bad {what}: {TOO_DEEP}\n  {text[:80]}…") from None
    return tree


def _at(text: str, error: InvalidInput, what: str) -> InvalidInput:
    """An error of the parser as one that quotes the text."""
    line, column = error.position or (1, 1)
    start = sum(len(before) + 1 for before in text.split("\n")[: line - 1])
    return problem_at(text, min(start + column - 1, len(text)), error.message, what=what)


def qualified(text: str, tree: n.Expression, rows: str, columns: Iterable[str]) -> str:
    """The text with the name of the rows before every column that has none: it may be evaluated
    beside other rows with columns of the same names."""
    from frazil.parser import nodes as n

    column_names, bound = {name.lower() for name in columns}, set(lambda_names(tree))
    offsets = sorted(
        node.start
        for node in tree.walk()
        if isinstance(node, n.ColumnRef)
        and node.start is not None
        and node.names[0].lower() in column_names - bound
        and not (node.names[0].lower() == rows.lower() and node.names[1:2])
    )
    pieces, end = [], 0
    for offset in offsets:
        pieces += [text[end:offset], f"{quoted(rows)}."]
        end = offset
    return "".join([*pieces, text[end:]])


def names_in(tree: n.Expression) -> frozenset[str] | None:
    """Every name in an expression and the queries inside it; None if a `*` stands for names."""
    from frazil.parser import nodes as n

    if any(isinstance(node, n.Star) for node in tree.walk()):
        return None
    return frozenset(
        name.lower()
        for node in everything_in(tree)
        if isinstance(node, n.ColumnRef)
        for name in node.names
    )


def has_window(tree: n.Expression) -> bool:
    """Whether an expression looks at other rows of those it is evaluated over. What a query inside
    looks at are its own."""
    from frazil.parser import nodes as n

    return any(isinstance(node, n.Window) for node in tree.walk())


def everything_in(tree: n.Expression) -> Iterator[n.Expression]:
    """Every expression in an expression, those of its queries too."""
    from frazil.parser import nodes as n

    for node in tree.walk():
        yield node
        for query in node.queries:
            yield from n.expressions_of(query)


class _Names:
    """Checks the columns that an expression means."""

    def __init__(
        self, text: str, scopes: Mapping[str, Columns], *, case_sensitive: bool, what: str
    ) -> None:
        self._text = text
        self._what = what
        self._scopes = scopes
        self._case_sensitive = case_sensitive

    def check(self, tree: n.Expression) -> None:
        """Refuse columns that no row has, or that two have. What a query inside means is for the
        engine to say: it has rows of its own."""
        from frazil.parser import nodes as n

        for node in everything_in(tree):
            if isinstance(node, n.ColumnRef) and node.names[0].lower().startswith(RESERVED):
                raise self._problem(node, f"names that begin with {RESERVED} are reserved")
        bound = set(lambda_names(tree))
        for node in tree.walk():
            if isinstance(node, n.Star):
                raise self._problem(node, "* stands for no value; name the columns")
            if isinstance(node, n.ColumnRef) and node.names[0].lower() not in bound:
                self._check_column(node)

    def _check_column(self, node: n.ColumnRef) -> None:
        owners = list(self._owners(node.names))
        if len(owners) > 1:
            name = ".".join(node.names)
            written = " or ".join(f"{alias}.{name}" for alias in owners)
            raise self._problem(node, f"column '{name}' is ambiguous; write {written}")
        if not owners:
            raise self._unknown(node)

    def _owners(self, names: Sequence[str]) -> Iterator[str]:
        """The rows that have a column; a name of rows goes before that of a column."""
        for alias, columns in self._scopes.items():
            if names[0] == alias and len(names) > 1 and self._has_path(columns, names[1:]):
                yield alias
                return
        for alias, columns in self._scopes.items():
            if self._has_path(columns, names):
                yield alias

    def _has_path(self, columns: Columns, path: Sequence[str]) -> bool:
        name = self._named(path[0], columns)
        return name is not None and self._has(columns[name], path[1:])

    def _named(self, name: str, columns: Columns) -> str | None:
        if name in columns or self._case_sensitive:
            return name if name in columns else None
        return next((column for column in columns if column.lower() == name.lower()), None)

    def _has(self, kind: IcebergType | None, path: Sequence[str]) -> bool:
        """Whether a type has such a part; what is inside lists and maps the engine has to know."""
        if not path or not isinstance(kind, StructType):
            return True
        parts = {part.name: part.field_type for part in kind.fields}
        name = self._named(path[0], parts)
        return name is not None and self._has(parts[name], path[1:])

    def _unknown(self, node: n.ColumnRef) -> InvalidInput:
        from difflib import get_close_matches

        name = ".".join(node.names)
        several = len(self._scopes) > 1
        column_names = [
            f"{alias}.{path}" if several else path
            for alias, columns in self._scopes.items()
            for path in _paths(columns)
        ]
        close = get_close_matches(name, column_names, n=1)
        hint = f" Did you mean '{close[0]}'?" if close else ""
        names = ", ".join(column_names[:30]) + (", …" if len(column_names) > 30 else "")
        problem = self._problem(node, f"unknown column '{name}'.{hint} Known columns: {names}")
        problem.is_certain = True
        return problem

    def _problem(self, node: n.Expression, problem: str) -> InvalidInput:
        return problem_at(self._text, node.start or 0, problem, what=self._what)


def lambda_names(tree: n.Expression) -> Iterator[str]:
    """The names that lambdas and list comprehensions give to their values."""
    from frazil.parser import nodes as n

    for node in tree.walk():
        if node.kind == "LAMBDA" and node.children:
            for name in node.children[0].walk():  # what is before the colon
                if isinstance(name, n.ColumnRef):
                    yield name.names[0].lower()


def _paths(columns: Columns, prefix: str = "") -> Iterator[str]:
    for name, kind in columns.items():
        yield f"{prefix}{name}"
        if isinstance(kind, StructType):
            parts = {part.name: part.field_type for part in kind.fields}
            yield from _paths(parts, f"{prefix}{name}.")


def with_params(text: str, params: Sequence[Any], *, what: str = "expression") -> str:
    """The text with every `?` replaced by the next value, written as a literal."""
    if isinstance(params, str | bytes) or not isinstance(params, Sequence):
        raise InvalidInput(f"params is a {type(params).__name__}; expected a list of values")
    check_text(text, f"the {what}")
    if not params and "?" not in text:
        return text
    from frazil.parser.tokens import Kind, Source, tokens

    try:
        marks = [token for token in tokens(Source(text)) if token.kind is Kind.PARAM]
    except InvalidInput as error:
        raise _at(text, error, what) from None
    numbered = next((mark for mark in marks if mark.value != "?"), None)
    if numbered is not None:
        problem = f"write ? for a value, not {numbered.value}"
        raise problem_at(text, numbered.start, problem, what=what)
    if len(marks) != len(params):
        raise InvalidInput(
            f"the {what} has {len(marks)} placeholder{'' if len(marks) == 1 else 's'} (?) and "
            f"{len(params)} value{'' if len(params) == 1 else 's'}\n  {text}"
        )
    pieces, end = [], 0
    for mark, value in zip(marks, params, strict=True):
        pieces += [text[end : mark.start], value_text(value)]
        end = mark.end
    return check_text("".join([*pieces, text[end:]]), f"the {what}")
