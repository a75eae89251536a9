"""Time travel in SQL: which state of a table a clause after its name asks for."""

from __future__ import annotations

from typing import Final

from frazil.parser.cursor import Cursor
from frazil.parser.tokens import Kind, Part, Source, Token
from frazil.sql.name_resolution import AsOf
from frazil.table.refs import is_time
from frazil.value_classes import frozen

_CLAUSES: Final = (
    (("for", "version", "as", "of"), "version"),
    (("for", "system_version", "as", "of"), "version"),
    (("version", "as", "of"), "version"),
    (("for", "timestamp", "as", "of"), "timestamp"),
    (("for", "system_time", "as", "of"), "timestamp"),
    (("timestamp", "as", "of"), "timestamp"),
)
_UNITS: Final = tuple(
    f"{unit}{end}"
    for unit in ("second", "minute", "hour", "day", "week", "month", "year")
    for end in ("", "s")
)
_FIRST_WORDS: Final = ("at", *sorted({words[0] for words, _ in _CLAUSES}))


@frozen
class TimeTravel:
    """A clause: where it stands and what it asks for; an expression is evaluated later."""

    part: Part
    is_version: bool
    value: AsOf | None
    expression: Part | None = None


def time_travels(source: Source, tokens: list[Token]) -> dict[int, TimeTravel]:
    """The clauses of a statement by the offset where the name before them ends."""
    clauses: dict[int, TimeTravel] = {}
    if not any(token.is_word(*_FIRST_WORDS) for token in tokens):
        return clauses
    cursor = Cursor(source, tokens)
    while cursor.token is not None:
        before = cursor.tokens[cursor.index - 1] if cursor.index else None
        if before is not None and before.is_name:
            clause = _clause(cursor)
            if clause is not None:
                clauses[before.end] = clause
                continue
        cursor.index += 1
    return clauses


def _clause(cursor: Cursor) -> TimeTravel | None:
    start = cursor.offset
    for words, kind in _CLAUSES:
        if cursor.take(*words):
            return _value(cursor, start, is_version=kind == "version")
    following = cursor.tokens[cursor.index + 1 : cursor.index + 4]
    if cursor.ahead("at") and len(following) == 3:
        bracket, kind_word, arrow = following
        is_version = kind_word.is_word("version")
        is_kind = is_version or kind_word.is_word("timestamp")
        if bracket.is_symbol("(") and is_kind and arrow.is_symbol("=>"):
            cursor.index += 4
            return _value(cursor, start, is_version=is_version, closes=True)
    return None


def _value(cursor: Cursor, start: int, *, is_version: bool, closes: bool = False) -> TimeTravel:
    at = cursor.offset
    token = cursor.token
    value: AsOf | None = None
    expression: Part | None = None
    is_typed = any(map(cursor.ahead, ("timestamp", "timestamptz"))) and _is_text(cursor.following)
    if is_typed and not is_version:
        cursor.index += 1
        token = cursor.token
    if token is not None and token.kind is Kind.STRING and _ends(cursor, closes):
        cursor.index += 1
        value = token.value
    elif token is not None and token.kind is Kind.NUMBER and _ends(cursor, closes):
        if not is_version:
            raise cursor.unexpected("a timestamp in 'quotes'")
        value = cursor.number("a snapshot id")
    elif token is not None and token.kind is Kind.PARAM:
        cursor.index += 1
        expression = Part(token.start, token.end)
    elif closes:
        expression = cursor.until(what="a value")
    elif not is_version and _operand(cursor):
        while cursor.is_at("+", "-"):
            cursor.index += 1
            if not _operand(cursor):
                raise cursor.unexpected("an interval or a time")
        expression = cursor.since(at)
    else:
        raise cursor.unexpected("a snapshot id, branch or tag" if is_version else "a timestamp")
    if closes:
        cursor.expect_symbol(")")
    if isinstance(value, str) and not is_version:
        check_time(cursor.source, at, value)
    return TimeTravel(
        part=cursor.since(start), is_version=is_version, value=value, expression=expression
    )


def _operand(cursor: Cursor) -> bool:
    """Step over a part of a sum: a call, brackets, an interval, a literal; False for others."""
    token, following = cursor.token, cursor.following
    if token is None or token.is_symbol(")"):
        return False
    is_call = following is not None and following.is_symbol("(")
    if cursor.take("interval"):
        cursor.advance()
        if cursor.token is not None and cursor.token.is_word(*_UNITS):
            cursor.index += 1
        return True
    if token.is_word("current_timestamp", "current_date") and not is_call:
        cursor.index += 1
        return True
    if token.is_word("date", "timestamp", "timestamptz") and _is_text(following):
        cursor.index += 2
        return True
    if token.is_symbol("(") or (token.is_name and is_call):
        cursor.index += 0 if token.is_symbol("(") else 1
        cursor.step_over_brackets()
        return True
    return False


def _is_text(token: Token | None) -> bool:
    return token is not None and token.kind is Kind.STRING


def _ends(cursor: Cursor, closes: bool) -> bool:
    following = cursor.following
    return not closes or (following is not None and following.is_symbol(")"))


def check_time(source: Source, at: int, value: str) -> None:
    """Refuse what is not a time."""
    if not is_time(value):
        raise source.problem(
            at,
            f"{value!r} is not a timestamp; expected one such as '2024-01-15 10:00:00' or "
            "'2 minutes ago'",
        )
