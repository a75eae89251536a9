"""Values given with a call, put into the text as literals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from frazil.errors import InvalidInput
from frazil.filter.text.sql_values import value_text
from frazil.parser.edits import Edit
from frazil.parser.tokens import Kind, Source, Token


class Parameters:
    """The values given with a call, by the tokens that stand for them."""

    def __init__(self, values: Sequence[Any] | Mapping[str, Any] | None) -> None:
        self._named = dict(values) if isinstance(values, Mapping) else {}
        self._listed = [] if values is None or isinstance(values, Mapping) else list(values)
        self._used = 0
        self._names_used: set[str] = set()

    def edits(self, source: Source, tokens: Iterable[Token]) -> list[Edit]:
        """Edits that put the values of one statement in; called once per statement, in order."""
        return [
            (token.start, token.end, self._literal(source, token))
            for token in tokens
            if token.kind is Kind.PARAM
        ]

    def _literal(self, source: Source, token: Token) -> str:
        try:
            return value_text(self._value(source, token))
        except InvalidInput as error:
            raise source.with_position(token.start, error) from None

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
            known = ", ".join(f"${name}" for name in self._named) or "none"
            raise source.problem(token.start, f"no value for ${name}; given: {known}")
        self._names_used.add(name)
        return self._named[name]
