"""Replacing parts of a text, and mapping positions back to the original."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from frazil.errors import InvalidInput
from frazil.expr.quotes import literal
from frazil.expr.sql_text import value_text
from frazil.sql.text import Kind, Part, Source, Token

Edit = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class EngineText:
    """A text made from parts of another; knows where its characters came from."""

    text: str
    _starts: tuple[tuple[int, int, int], ...]

    def origin(self, offset: int) -> int:
        """Where the character at an offset stood before."""
        for made, start, length in reversed(self._starts):
            if offset >= made:
                return start + min(offset - made, length)
        return self._starts[0][1] if self._starts else 0


def rewrite(
    source: Source,
    parts: Sequence[Part],
    edits: Iterable[Edit],
    *,
    prefix: str = "",
    suffix: str = "",
) -> EngineText:
    """The parts of a text, one after the other, with edits made in them."""
    made = prefix
    starts: list[tuple[int, int, int]] = [(0, parts[0].start, 0)]
    ordered = sorted(edits, key=lambda edit: (edit[0], -edit[1]))  # the outer one of two counts
    for part in parts:
        at = part.start
        for start, end, new in ordered:
            if start < at or end > part.end:
                continue
            starts.append((len(made), at, start - at))
            made += source.text[at:start]
            starts.append((len(made), start, 0))
            made += new
            at = end
        starts.append((len(made), at, part.end - at))
        made += source.text[at : part.end] + "\n"
    return EngineText(made + suffix, tuple(starts))


class Parameters:
    """The values given with a call, by the tokens that stand for them."""

    def __init__(self, given: Sequence[Any] | Mapping[str, Any] | None) -> None:
        self._named = dict(given) if isinstance(given, Mapping) else {}
        self._listed = [] if given is None or isinstance(given, Mapping) else list(given)
        self._used = 0
        self._names_used: set[str] = set()

    def edits(self, source: Source, tokens: Iterable[Token]) -> list[Edit]:
        """Edits that put the values of one statement in; called once per statement, in order."""
        return [
            (token.start, token.end, sql_literal(self._value(source, token), source, token.start))
            for token in tokens
            if token.kind is Kind.PARAM
        ]

    def check_used(self) -> None:
        """Refuse values that no statement has a place for."""
        if self._used < len(self._listed):
            raise InvalidInput(
                f"{len(self._listed)} parameters were given, but the text has {self._used} places"
            )
        spare = [name for name in self._named if name not in self._names_used]
        if spare:
            raise InvalidInput(f"parameter ${spare[0]} was given, but the text does not name it")

    def _value(self, source: Source, token: Token) -> Any:
        name = token.value[1:]
        if name.isdigit() or not name:
            at = int(name) - 1 if name else self._used
            self._used = max(self._used, at + 1) if name else self._used + 1
            if not 0 <= at < len(self._listed):
                raise source.problem(
                    token.start,
                    f"no value for parameter {at + 1}; {len(self._listed)} were given",
                )
            return self._listed[at]
        if name not in self._named:
            known = ", ".join(f"${each}" for each in self._named) or "none"
            raise source.problem(token.start, f"no value for ${name}; given: {known}")
        self._names_used.add(name)
        return self._named[name]


def sql_literal(value: Any, source: Source, at: int) -> str:
    """A Python value as SQL that keeps its type wherever it stands."""
    match value:
        case bool():
            pass
        case int() if value < 0:
            return f"({value})"
        case float():
            return f"CAST({literal(repr(value) if math.isfinite(value) else str(value))} AS DOUBLE)"
        case Decimal() if value.is_finite():
            text = f"{value:f}"
            return text if "." in text and value >= 0 else f"({text})"
        case timedelta():
            micros = (value.days * 86400 + value.seconds) * 10**6 + value.microseconds
            return f"to_microseconds({micros})"
        case list() | tuple():
            return "[" + ", ".join(sql_literal(each, source, at) for each in value) + "]"
        case dict():
            pairs = ", ".join(
                f"{literal(str(key))}: {sql_literal(each, source, at)}"
                for key, each in value.items()
            )
            return "{" + pairs + "}"
    try:
        return value_text(value)
    except InvalidInput:
        kind = type(value).__name__
        raise source.problem(at, f"a value of type {kind} cannot be a parameter") from None
