"""What the columns of a result are called whose expressions name tables.

DuckDB calls a column without an alias after the text of its expression. What the binder puts in
place of tables is no part of the user's text, and would be seen there, with paths of files. Such
outputs get the name that the text as it was written has, as an alias.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from frazil.filter.text.quotes import quoted
from frazil.parser import nodes as n
from frazil.parser.duckdb_parser import text_of
from frazil.parser.edits import Edit
from frazil.parser.tokens import Token
from frazil.value_classes import dataclass, field

_ENDS: Final = ("where", "having", "window", "qualify", "limit", "offset", "fetch", "into")
_ENDS_BEFORE_BY: Final = ("group", "order")
_SETS: Final = ("union", "except", "intersect", "using")

_Chain = tuple[n.Expression, ...]
"""The outputs that a part of the tree is inside of, the outermost first."""


def output_names(
    query: n.Query,
    tokens: Sequence[Token],
    replaced: Mapping[n.BaseTable | n.ColumnRef, int],
) -> dict[n.Expression, tuple[Edit, str]]:
    """Outputs whose text changes, with the edit that names them and the name. `replaced` are the
    parts that something else is put in place of, with the numbers of their tokens."""
    chains = [(part, chain) for part, chain in _chains(query, ()) if chain and part in replaced]
    if not chains:
        return {}
    items = _items(tokens)
    names: dict[n.Expression, tuple[Edit, str]] = {}
    for part, chain in chains:
        at = replaced[part]
        around = [item for item in items if item.first <= at <= item.last]
        if len(around) != len(chain):
            continue  # a clause that the tree writes in another way
        for output, item in zip(chain, around, strict=True):
            if output not in names and not output.alias and _is_one_column(output):
                end, name = tokens[item.last].end, text_of(output.raw)
                names[output] = (end, end, f" AS {quoted(name)}"), name
    return names


def _is_one_column(output: n.Expression) -> bool:
    """Whether it is one column, which is called after its text."""
    makes_columns = any(isinstance(part, n.Star) for part in output.walk())
    return not isinstance(output, n.ColumnRef) and not makes_columns


def _chains(query: n.Query, outer: _Chain) -> Iterator[tuple[n.BaseTable | n.ColumnRef, _Chain]]:
    """Every table, and every column of an output, with the outputs it is inside of."""
    for cte in query.ctes:
        yield from _chains(cte.query, outer)
    inner = list(query.queries)
    tops = list(query.expressions)
    if isinstance(query, n.Select):
        for output in query.outputs:
            for part in output.walk():
                if isinstance(part, n.ColumnRef):
                    yield part, (*outer, output)
                for subquery in part.queries:
                    yield from _chains(subquery, (*outer, output))
        tops += query.keys
        tops += [top for top in (query.where, query.having, query.qualify) if top is not None]
        for ref in n.walk_tables(query.source):
            if isinstance(ref, n.BaseTable):
                yield ref, outer
            inner += ref.queries
            tops += ref.expressions
    inner += [subquery for top in tops for part in top.walk() for subquery in part.queries]
    for subquery in inner:
        yield from _chains(subquery, outer)


@dataclass(frozen=True, slots=True)
class _Item:
    """The tokens of one entry of a SELECT list, by number."""

    first: int
    last: int


@dataclass(slots=True)
class _Bracket:
    """What is between two brackets: the entry of a SELECT list that is being read there."""

    first: int | None = None
    items: list[_Item] = field(default_factory=list)

    def end(self, before: int) -> None:
        """The entry ends before a token."""
        if self.first is not None and self.first < before:
            self.items.append(_Item(self.first, before - 1))
        self.first = None


def _items(tokens: Sequence[Token]) -> list[_Item]:
    """The entries of all SELECT lists, the outer ones before those inside of them."""
    open_brackets = [_Bracket()]
    items: list[_Item] = []
    for at, token in enumerate(tokens):
        here = open_brackets[-1]
        if token.is_symbol("(", "[", "{"):
            open_brackets.append(_Bracket())
        elif token.is_symbol(")", "]", "}"):
            here.end(at)
            items += here.items
            if len(open_brackets) > 1:
                open_brackets.pop()
        elif token.is_word("select") or (here.first is not None and token.is_symbol(",")):
            here.end(at)
            here.first = at + 1
        elif here.first is not None and _ends_list(tokens, at):
            here.end(at)
    for bracket in open_brackets:
        bracket.end(len(tokens))
        items += bracket.items
    return sorted(items, key=lambda item: (item.first, -item.last))


def _ends_list(tokens: Sequence[Token], at: int) -> bool:
    """Whether a SELECT list ends before a token that no bracket is around."""
    token = tokens[at]
    if token.is_word("from"):
        return not tokens[at - 1].is_word("distinct")  # IS DISTINCT FROM
    if token.is_word(*_ENDS_BEFORE_BY):
        return at + 1 < len(tokens) and tokens[at + 1].is_word("by")
    return token.is_word(*_ENDS, *_SETS) or token.is_symbol(";")
