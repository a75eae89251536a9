"""Expressions in Frazil's dialect, which is DuckDB's, as Spark reads them.

Spark's own parser judges and executes what Spark runs: nothing is printed from a tree. Only tokens
that the two spell differently are rewritten one by one: names in quotes, texts, literals with
their type, lists and structs. What Spark would silently read in another way is refused; what it
does not know it refuses itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from frazil.errors import Unsupported
from frazil.parser.tokens import Kind, Source, Token, tokens
from frazil.spark.expressions.conditions import quoted

_TYPES: Final = {
    "timestamp": "TIMESTAMP_NTZ",
    "timestamptz": "TIMESTAMP_LTZ",
    "date": "DATE",
    "time": "TIME",
    "uuid": "",
}
"""Words before a text that make it a literal of a type; Spark keeps UUIDs as text."""
_BEFORE_VALUE: Final = frozenset(
    (
        "and",
        "or",
        "not",
        "in",
        "when",
        "then",
        "else",
        "case",
        "between",
        "like",
        "is",
        "select",
        "where",
        "on",
        "by",
        "as",
        "from",
        "distinct",
    )
)
"""Words that a list may follow; behind other words, names and brackets [ takes an element."""


def spark_text(text: str) -> str:
    """The same expression for Spark."""
    source = Source(text)
    tokens_ = tokens(source)
    pieces, end = [], 0
    for start, stop, new in _edits(source, tokens_):
        pieces += [text[end:start], new]
        end = stop
    return "".join([*pieces, text[end:]])


def string_literal(value: str) -> str:
    """A text as Spark reads it, which takes a backslash for an escape."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _edits(source: Source, tokens_: Sequence[Token]) -> Iterator[tuple[int, int, str]]:
    opened: list[str] = []
    number = 0
    while number < len(tokens_):
        token = tokens_[number]
        following = tokens_[number + 1] if number + 1 < len(tokens_) else None
        blob = _blob(tokens_[number : number + 6])
        if blob is not None:
            yield token.start, tokens_[number + 5].end, blob
            number += 6
            continue
        match token.kind:
            case Kind.QUOTED:
                yield token.start, token.end, quoted(token.value)
            case Kind.STRING:
                yield token.start, token.end, string_literal(token.value)
            case Kind.WORD if _is_typed(token, following):
                yield token.start, token.end, _TYPES[token.value.lower()]
            case Kind.SYMBOL:
                new = _bracket(source, tokens_, number, opened)
                if new is not None:
                    yield token.start, token.end, new
        number += 1


def _is_typed(token: Token, following: Token | None) -> bool:
    is_text = following is not None and following.kind is Kind.STRING
    return is_text and token.value.lower() in _TYPES


def _blob(tokens_: Sequence[Token]) -> str | None:
    """`CAST('\\xAB' AS BLOB)`, as values are written, as bytes of Spark."""
    if len(tokens_) < 6 or tokens_[2].kind is not Kind.STRING:
        return None
    words = [token.value.lower() for token in tokens_]
    if [words[0], words[1], words[3], words[4], words[5]] != ["cast", "(", "as", "blob", ")"]:
        return None
    digits = tokens_[2].value.split("\\x")
    if digits[0] or any(len(pair) != 2 for pair in digits[1:]):
        raise Unsupported(
            "only bytes that are all written as \\xAB can be given to Spark", feature="BLOB text"
        )
    return f"X'{''.join(digits)}'"


def _bracket(
    source: Source, tokens_: Sequence[Token], number: int, opened: list[str]
) -> str | None:
    """What stands for a bracket: lists and structs are calls in Spark."""
    token = tokens_[number]
    match token.value:
        case "[":
            before = tokens_[number - 1] if number else None
            if before is not None and not _is_before_value(before):
                raise source.unsupported(
                    token.start,
                    "elements are counted from 1 here and from 0 in Spark; "
                    "use element_at(list, position)",
                    feature="[] on Spark",
                )
            opened.append("]")
            return "array("
        case "{":
            opened.append("}")
            return "named_struct("
        case "(":
            opened.append(")")
        case ":" if opened and opened[-1] == "}":
            return ","
        case ")" | "]" | "}":
            closed = opened.pop() if opened else ")"
            return None if closed == ")" else ")"
    return None


def _is_before_value(token: Token) -> bool:
    if token.kind is Kind.WORD:
        return token.value.lower() in _BEFORE_VALUE
    return token.kind is Kind.SYMBOL and token.value not in (")", "]", "}")
