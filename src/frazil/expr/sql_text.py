"""SQL expressions as text: parsed by sqlglot, checked against columns, with values filled in.

The dialect is DuckDB's, which evaluates the text; other engines are given a translation. sqlglot
is imported when text needs it, which plain filters (`frazil.expr.filter_text`) do not.
"""

from __future__ import annotations

import difflib
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, StructType

from frazil.errors import InvalidInput
from frazil.expr.quotes import literal
from frazil.expr.tokens import problem_at
from frazil.format.checks import check_text

if TYPE_CHECKING:
    from sqlglot import exp

DIALECT: Final = "duckdb"
TOO_DEEP: Final = "it is nested too deeply; use IN or a table for long lists, parts for long sums"
TARGET, SOURCE = "t", "s"
Columns = Mapping[str, IcebergType | None]
"""Top-level columns by name; no type where it does not matter."""

_PLACEHOLDERS: Final = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `(?:[^`]|``)*` | --[^\n]* | /\*.*?\*/ | (?P<mark>\?)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """SQL that stands for a value. Made by `frazil.expr("price * 1.1")`."""

    text: str
    params: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return filled(self.text, self.params)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlText:
    """A checked expression. `columns` are the top-level columns it names, by alias."""

    text: str
    tree: exp.Expr
    columns: Mapping[str, frozenset[str]]

    def in_dialect(self, dialect: str) -> str:
        """The same expression for another engine."""
        return self.tree.sql(dialect)

    def qualified(self, scopes: Mapping[str, Columns]) -> SqlText:
        """The same with the alias before every column; unchanged if it is there already."""
        from sqlglot import exp

        changed: list[exp.Expr] = []

        def owned(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column) or node.find_ancestor(exp.Query):
                return node
            parts = [part.copy() for part in node.parts]
            if len(parts) > 1 and parts[0].name in scopes:
                return node
            owner = next((a for a, known in scopes.items() if parts[0].name in known), None)
            if owner is None:
                return node
            changed.append(node)
            return exp.Dot.build([exp.to_identifier(owner), *parts])

        tree = self.tree.transform(owned)
        if not changed:
            return self
        return SqlText(text=tree.sql(DIALECT), tree=tree, columns=self.columns)


def columns_of_schema(schema: Schema) -> Columns:
    """The columns of a table that an expression may name."""
    return {field.name: field.field_type for field in schema.fields}


def sql_text(
    text: str,
    scopes: Mapping[str, Columns],
    *,
    params: Sequence[Any] = (),
    case_sensitive: bool = True,
    what: str = "expression",
) -> SqlText:
    """Parse one expression; every column must belong to one of the scopes, given by alias."""
    whole = filled(text, params, what=what)
    tree = _parsed(whole, what)
    found: dict[str, set[str]] = {alias: set() for alias in scopes}
    names = _Names(whole, scopes, case_sensitive=case_sensitive, what=what)
    for column in names.columns(tree):
        alias, name = column
        found[alias].add(name)
    return SqlText(
        text=whole,
        tree=tree,
        columns={alias: frozenset(names) for alias, names in found.items()},
    )


def conjuncts(tree: exp.Expr) -> Iterator[str]:
    """The conditions that all have to hold, as text of plain filters where it can be written so."""
    from sqlglot import exp

    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.And):
        yield from conjuncts(tree.left)
        yield from conjuncts(tree.right)
        return
    # sqlglot writes DATE '…' as a cast, which plain filters do not know.
    yield re.sub(
        r"CAST\('((?:[^']|'')*)' AS (DATE|TIMESTAMP|TIMESTAMPTZ|TIME|UUID)\)",
        r"\2 '\1'",
        tree.sql(DIALECT),
    )


def _parsed(text: str, what: str) -> exp.Expr:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import ParseError, TokenError

    if not text.strip():
        raise InvalidInput(f"the {what} is empty")
    try:
        trees = sqlglot.parse(text, dialect=DIALECT)
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        position = len(first.get("start_context") or "") if first.get("line") == 1 else 0
        problem = re.sub(r" for <class '.*?'>", "", str(first.get("description") or error))
        raise problem_at(text, position, problem, what=what) from None
    except TokenError as error:
        raise InvalidInput(f"bad {what}: {error}\n  {text}") from None
    except RecursionError:
        raise InvalidInput(f"bad {what}: {TOO_DEEP}\n  {text[:80]}…") from None
    if len(trees) != 1 or trees[0] is None:
        raise InvalidInput(f"bad {what}: expected one expression\n  {text}")
    tree = trees[0]
    inside = tree.this if isinstance(tree, exp.Subquery) else None  # (SELECT …) is a value
    refused = exp.Query | exp.DDL | exp.DML | exp.Command | exp.Alias
    if not isinstance(inside, exp.Query) and isinstance(tree, refused):
        kind = type(tree).__name__.upper()
        raise InvalidInput(f"bad {what}: expected an expression, found {kind}\n  {text}")
    return tree


class _Names:
    """Finds the columns that an expression means."""

    def __init__(
        self, text: str, scopes: Mapping[str, Columns], *, case_sensitive: bool, what: str
    ) -> None:
        self._text = text
        self._what = what
        self._scopes = scopes
        self._case_sensitive = case_sensitive

    def columns(self, tree: exp.Expr) -> Iterator[tuple[str, str]]:
        """Alias and name of every column, with complaints about unknown ones."""
        from sqlglot import exp

        if tree.find(exp.Star):
            for alias, columns in self._scopes.items():
                yield from ((alias, name) for name in columns)
        bound = {name.name for found in tree.find_all(exp.Lambda) for name in found.expressions}
        for column in tree.find_all(exp.Column):
            parts = [part.name for part in column.parts]
            within = column.find_ancestor(exp.Query)
            owners = list(self._owners(parts))
            yield from owners
            if not owners and within is None and parts[0] not in bound:
                raise self._unknown(parts, column.parts[0].meta.get("start", 0))

    def _owners(self, parts: list[str]) -> Iterator[tuple[str, str]]:
        for alias, columns in self._scopes.items():
            for path in ([parts[1:]] if parts[0] == alias and parts[1:] else []) + [parts]:
                name = self._named(path[0], columns)
                if name is not None and self._has(columns[name], path[1:]):
                    yield alias, name
                    break

    def _named(self, name: str, columns: Columns) -> str | None:
        if name in columns or self._case_sensitive:
            return name if name in columns else None
        return next((known for known in columns if known.lower() == name.lower()), None)

    def _has(self, kind: IcebergType | None, path: list[str]) -> bool:
        """Whether a type has such a part; what is inside lists and maps the engine has to know."""
        if not path or not isinstance(kind, StructType):
            return True
        parts = {part.name: part.field_type for part in kind.fields}
        name = self._named(path[0], parts)
        return name is not None and self._has(parts[name], path[1:])

    def _unknown(self, parts: list[str], position: int) -> InvalidInput:
        name = ".".join(parts)
        several = len(self._scopes) > 1
        known = [
            f"{alias}.{path}" if several else path
            for alias, columns in self._scopes.items()
            for path in _paths(columns)
        ]
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean '{close[0]}'?" if close else ""
        shown = ", ".join(known[:30]) + (", …" if len(known) > 30 else "")
        problem = f"unknown column '{name}'.{hint} Known columns: {shown}"
        found = problem_at(self._text, position, problem, what=self._what)
        found.is_certain = True
        return found


def _paths(columns: Columns, prefix: str = "") -> Iterator[str]:
    for name, kind in columns.items():
        yield f"{prefix}{name}"
        if isinstance(kind, StructType):
            parts = {part.name: part.field_type for part in kind.fields}
            yield from _paths(parts, f"{prefix}{name}.")


# Values


def filled(text: str, params: Sequence[Any], *, what: str = "expression") -> str:
    """The text with every `?` replaced by the next value, written as a literal."""
    if isinstance(params, str | bytes) or not isinstance(params, Sequence):
        raise InvalidInput(f"params is a {type(params).__name__}; expected a list of values")
    left = list(params)
    marks = [match for match in _PLACEHOLDERS.finditer(text) if match["mark"]]
    if len(marks) != len(left):
        raise InvalidInput(
            f"the {what} has {len(marks)} placeholder{'' if len(marks) == 1 else 's'} (?) and "
            f"{len(left)} value{'' if len(left) == 1 else 's'}\n  {text}"
        )
    made, end = "", 0
    for match, value in zip(marks, left, strict=True):
        made += text[end : match.start()] + value_text(value)
        end = match.end()
    return check_text(made + text[end:], f"the {what}")


def value_text(value: Any) -> str:
    """A Python value as an SQL literal."""
    item = getattr(value, "item", None)
    if item is not None and type(value).__module__ == "numpy":
        value = item()
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            plain = value == value and value not in (float("inf"), float("-inf"))
            return repr(value) if plain else f"CAST('{value}' AS DOUBLE)"
        case Decimal():
            if not value.is_finite():
                return f"CAST('{value}' AS DOUBLE)"
            return f"{value:f}"
        case str():
            return string_text(value)
        case datetime():
            zoned = "TIMESTAMP" if value.tzinfo is None else "TIMESTAMPTZ"
            return f"{zoned} '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case time():
            return f"TIME '{value.isoformat()}'"
        case uuid.UUID():
            return f"UUID '{value}'"
        case bytes() | bytearray():
            digits = "".join(f"\\x{byte:02X}" for byte in value)
            return f"CAST('{digits}' AS BLOB)"
        case list() | tuple():
            return f"[{', '.join(map(value_text, value))}]"
        case Mapping():
            pairs = (f"{string_text(str(k))}: {value_text(v)}" for k, v in value.items())
            return f"{{{', '.join(pairs)}}}"
    raise InvalidInput(f"a {type(value).__name__} cannot be used as a value in SQL: {value!r}")


def string_text(value: str) -> str:
    """A text literal. Parsers stop at a zero byte, so those are written as `chr(0)`."""
    if "\0" in value:
        return "(" + " || chr(0) || ".join(map(string_text, value.split("\0"))) + ")"
    return literal(value)
