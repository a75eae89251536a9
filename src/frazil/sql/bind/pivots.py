"""PIVOT without a list of values: the values are read first, and put into the text as IN.

DuckDB makes such a statement two, one of which makes a type. Ours stays one query.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from frazil.filter.text.quotes import literal
from frazil.parser.cursor import Cursor
from frazil.parser.edits import Edit
from frazil.parser.tokens import Part, Token
from frazil.parser.tree import parse_expression
from frazil.sql.engine.interruptible import called

if TYPE_CHECKING:
    from frazil.sql.bind.binding import Binder

MAX_VALUES: Final = 10_000
_ENDS: Final = ("using", "group", "order", "limit", "offset")


def pivot_values(binder: Binder, tokens: Sequence[Token], parts: Sequence[Part]) -> list[Edit]:
    """What to put around each expression of ON that no IN follows."""
    edits: list[Edit] = []
    for number, token in enumerate(tokens):
        if not token.is_word("pivot", "pivot_wider"):
            continue
        inside = any(part.start <= token.start < part.end for part in parts)
        if inside and (number == 0 or tokens[number - 1].is_symbol("(", ")")):
            if number == 0 or not tokens[number - 1].is_symbol(")"):
                edits += _values(binder, tokens, number + 1)
            elif not any(after.is_symbol("(") for after in tokens[number + 1 : number + 2]):
                raise binder.source.unsupported(
                    token.start,
                    "PIVOT may not follow WITH; write it as a query of WITH or after FROM, with "
                    "the values after IN",
                    feature="PIVOT after WITH",
                )
    return edits


def _values(binder: Binder, tokens: Sequence[Token], number: int) -> list[Edit]:
    cursor = Cursor(binder.source, tokens)
    cursor.index = number
    source = cursor.until("on", *_ENDS, what="a table or a query in brackets")
    edits: list[Edit] = []
    if not cursor.take("on"):
        return edits
    while True:
        column = cursor.until("in", *_ENDS, what="a column")
        if cursor.take("in"):
            cursor.until(*_ENDS, what="values")
        else:
            parse_expression(binder.source.text[column.start : column.end])
            edits.append((column.start, column.start, "("))
            edits.append((column.end, column.end, f") {_listed(binder, column, source)}"))
        if not cursor.take_comma():
            return edits


def _listed(binder: Binder, column: Part, source: Part) -> str:
    ran = binder.query(
        column, source, prefix="SELECT DISTINCT CAST(", between=" AS VARCHAR) AS v FROM "
    )
    limited = (
        f"SELECT v FROM (\n{ran.text}\n) WHERE v IS NOT NULL ORDER BY v LIMIT {MAX_VALUES + 1}"
    )
    try:
        rows = called(binder.engine, partial(binder.engine.values, limited))
    except Exception as error:
        problem = binder.engine.failure(error, binder.source)
        raise binder.source.with_position(column.start, problem) from error
    if len(rows) > MAX_VALUES:
        raise binder.source.problem(column.start, f"more than {MAX_VALUES} values to pivot on")
    if not rows:
        raise binder.source.problem(column.start, "there are no values to pivot on")
    return f"IN ({', '.join(map(literal, rows))})"
