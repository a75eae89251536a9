"""Filters that people type: what is wrong with one and where, what may come next, and where its
values lie on a column's scale."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from math import inf
from typing import Any

from frazil.errors import FrazilError
from frazil.filter.bind.file_predicates import ExpressionColumn, is_of_files
from frazil.filter.bind.filter_columns import ColumnIndex
from frazil.filter.prune.partition_test import condition
from frazil.filter.text.quotes import literal
from frazil.filter.text.quotes import quoted as as_identifier
from frazil.filter.text.tokens import TextProblem
from frazil.iceberg.expressions import And, BooleanExpression, BoundPredicate, Not, Op, Or
from frazil.iceberg.schema import Schema
from frazil.serve.explorer.scales import Scale

_WORD = re.compile(r"'(?:[^']|'')*'?|\"(?:[^\"]|\"\")*\"?|[\w$.]+|\S")
_HINTS = re.compile(r"(?<!\s)\s*+Did you mean [^?]*\?")
_KNOWN = re.compile(r"(?<!\s)\s*+Known columns:.*", re.DOTALL)
_MAX_NAMES = 12
_OPERATORS = ("=", "<", "<=", ">", ">=", "<>", "BETWEEN", "IN", "LIKE", "IS NULL", "IS NOT NULL")


def complaint(text: str, error: FrazilError, schema: Schema) -> dict[str, Any]:
    """What is wrong with a filter, from which character to which, and what may have been meant."""
    message, at = str(error), None
    if isinstance(error, TextProblem):
        message, at = error.problem, error.offset
    start = min(at or 0, len(text))
    word = _WORD.match(text, start)
    end = len(text) if at is None else (start + 1 if word is None else word.end())
    names: list[str] = []
    if word is not None and at is not None and message.startswith("unknown column"):
        names = get_close_matches(word.group().strip('"'), list(ColumnIndex.of(schema).by_name), 3)
    hint = f"Did you mean {' or '.join(names)}?" if names else None
    message = _KNOWN.sub("", _HINTS.sub("", message.partition("\n")[0])).strip()
    return {"at": start, "end": max(end, start), "message": message, "hint": hint, "names": names}


def completion(text: str, at: int, schema: Schema) -> dict[str, Any]:
    """What may stand at a place of a filter that is being typed."""
    before = text[:at]
    words = list(_WORD.finditer(before))
    last = words[-1] if words else None
    names = list(ColumnIndex.of(schema).by_name)
    touching = last is not None and last.end() == len(before)
    word = last.group() if last is not None and touching else ""
    word = "" if word in ("(", ",") else word
    start = len(before) - len(word)
    previous = _WORD.findall(before[:start])
    ends = previous[-1].lower() if previous else "and"
    if word.startswith("'"):
        return _offer(start, at, [], "value", column=_compared(previous, names))
    if ends == "(" and previous[-2:-1] and previous[-2].lower() == "in":
        return _offer(start, at, [], "value", column=_compared(previous, names))
    if ends in ("and", "or", "not", "("):
        prefix = word.strip('"').lower()
        starts = [name for name in names if name.lower().startswith(prefix)]
        holds = [name for name in names if prefix in name.lower() and name not in starts]
        quoted = [_quoted(name) for name in (*starts, *holds)]
        return _offer(start, at, quoted, "column")
    column_names = {name.lower() for name in names}
    if ends.strip('"') in column_names:
        fits = [operator for operator in _OPERATORS if operator.lower().startswith(word.lower())]
        return _offer(start, at, fits, "operator")
    if ends in ("=", "<", ">", "<=", ">=", "<>", "in", "between", "like", "is", ","):
        return _offer(start, at, [], "value", column=_compared(previous, names))
    fits = [keyword for keyword in ("AND", "OR") if keyword.startswith(word.upper())]
    return _offer(start, at, fits, "keyword")


def _offer(
    start: int, at: int, names: Sequence[str], kind: str, *, column: str | None = None
) -> dict[str, Any]:
    offered = list(names[:_MAX_NAMES])
    return {"from": start, "to": at, "names": offered, "kind": kind, "column": column}


def _compared(previous: Sequence[str], names: Sequence[str]) -> str | None:
    """The column that a value is compared with: the last one that was named."""
    names_by_lower = {name.lower(): name for name in names}
    columns = (names_by_lower.get(word.strip('"').lower()) for word in reversed(previous))
    return next((name for name in columns if name is not None), None)


def offered_values(texts: Sequence[str | None], typed: str, *, quoted: bool) -> list[str]:
    """Values of a column as literals: a few of those that begin with what was typed, spread over
    all of them. Texts that were cut are no values."""
    prefix = typed.strip("'").lower()
    matching = [
        text
        for text in dict.fromkeys(texts)
        if text is not None and not text.endswith("…") and text.lower().startswith(prefix)
    ]
    if len(matching) > _MAX_NAMES:
        last = len(matching) - 1
        matching = [matching[round(at * last / (_MAX_NAMES - 1))] for at in range(_MAX_NAMES)]
    return [literal(text) if quoted else text for text in matching]


_PLAIN = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_KEYWORDS = frozenset({"and", "or", "not", "in", "is", "between", "like", "null", "true", "false"})


def _quoted(name: str) -> str:
    if _PLAIN.fullmatch(name) and name.lower() not in _KEYWORDS:
        return name
    return as_identifier(name)


def predicates(expression: BooleanExpression) -> Iterator[BoundPredicate]:
    """Every predicate of a filter, in order."""
    match expression:
        case And() | Or():
            yield from predicates(expression.left)
            yield from predicates(expression.right)
        case Not():
            yield from predicates(expression.child)
        case BoundPredicate():
            yield expression


def has_files_alone(expression: BooleanExpression) -> bool:
    """Whether boxes or expressions are judged, which have no place on a column's scale."""
    return any(is_of_files(predicate) for predicate in predicates(expression))


def column_ids(expression: BooleanExpression) -> list[int]:
    """The columns of a filter, in order, each once."""
    ids = [
        predicate.term.field.field_id
        for predicate in predicates(expression)
        if not isinstance(predicate.term, ExpressionColumn)
    ]
    return list(dict.fromkeys(ids))


def bands(expression: BooleanExpression, field_id: int, scale: Scale) -> list[list[float]]:
    """Where the values that a filter asks of a column lie on its scale.

    Conditions that all have to hold narrow the range. A filter with OR shows each part.
    """
    ranges: list[tuple[float, float]] = []
    narrowed = (-inf, inf)
    has_or = _has_or(expression)
    for predicate in predicates(expression):
        if predicate.term.field.field_id != field_id or is_of_files(predicate):
            continue
        compared = condition(predicate)
        low, high = -inf, inf
        places = [scale.place(value) for value in compared.values]
        places_found = [place for place in places if place is not None]
        match compared.op:
            case Op.EQ | Op.IN:
                ranges += [(place, place) for place in places_found]
                continue
            case Op.LT | Op.LE if places_found:
                high = places_found[0]
            case Op.GT | Op.GE if places_found:
                low = places_found[0]
            case _:
                continue
        if has_or:
            ranges.append((low, high))
        else:
            narrowed = (max(narrowed[0], low), min(narrowed[1], high))
    if narrowed != (-inf, inf):
        ranges.append(narrowed)
    return [[max(low, 0.0), min(high, 1.0)] for low, high in ranges]


def _has_or(expression: BooleanExpression) -> bool:
    if isinstance(expression, And):
        return _has_or(expression.left) or _has_or(expression.right)
    return isinstance(expression, Or)
