"""Which columns a query may look at, where fewer columns mean fewer files: of tables with column
files. Whatever may stand for any column counts as all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from frazil.format.metadata.summary_totals import has_column_files
from frazil.parser import nodes as n
from frazil.parser.tokens import Token
from frazil.sql.bind.references import Reference
from frazil.value_classes import replace

_QUERIES: Final = frozenset({"RECURSIVE_CTE_NODE", "CTE_NODE"})
_TABLES: Final = frozenset({"EXPRESSION_LIST", "EMPTY", "EMPTY_FROM"})


def narrow(query: n.Query, tokens: Sequence[Token], references: Sequence[Reference]) -> None:
    """Leave columns that the query does not look at out of the scans of tables with column files.
    The tokens are those of the statement."""
    with_files = [
        reference
        for reference in references
        if reference.scan is not None
        and not reference.is_bare
        and reference.scan.snapshot is not None
        and has_column_files(reference.scan.snapshot)
    ]
    names = names_used(query, tokens) if with_files else None
    if names is None:
        return
    for reference in with_files:
        assert reference.scan is not None
        own = reference.columns or [field.name for field in reference.scan.table_schema.fields]
        reference.columns = [name for name in own if name.lower() in names] or own[:1]
        reference.scan = replace(reference.scan, columns=tuple(reference.columns))


def names_used(query: n.Query, tokens: Sequence[Token] = ()) -> frozenset[str] | None:
    """Every name in a query, in lower case; None where it may mean any column."""
    names = {token.value.lower() for token in tokens if token.is_name}
    tables: set[str] = set()
    for inner in n.walk_queries(query):
        if isinstance(inner, n.Select):
            for ref in n.walk_tables(inner.source):
                if not _names_its_columns(ref):
                    return None
                tables.add(ref.alias.lower())
                if isinstance(ref, n.BaseTable):
                    tables.add(ref.path[-1].lower())
                elif isinstance(ref, n.JoinRef):
                    names.update(name.lower() for name in ref.using)
        elif not isinstance(inner, n.SetOperation) and inner.kind not in _QUERIES:
            return None
    counted: set[int] = set()
    for part in n.expressions_of(query):
        if isinstance(part, n.Function) and part.name == "count" and not part.raw.get("distinct"):
            stars = (child for child in part.children if isinstance(child, n.Star))
            counted.update(id(star) for star in stars if star.is_plain and not star.relation)
        elif isinstance(part, n.ColumnRef):
            if part.names[-1].lower() in tables:  # a row as a struct
                return None
            names.update(name.lower() for name in part.names)
        elif part.kind == "POSITIONAL_REFERENCE" or (
            isinstance(part, n.Star) and id(part) not in counted
        ):
            return None
    return frozenset(names)


def _names_its_columns(ref: n.TableRef) -> bool:
    match ref:
        case n.BaseTable():
            return not ref.columns
        case n.JoinRef():
            return ref.method in ("REGULAR", "CROSS", "ASOF", "POSITIONAL", "DEPENDENT")
        case n.SubqueryRef() | n.TableFunction():
            return True
    return ref.kind in _TABLES


__all__ = ["names_used", "narrow"]
